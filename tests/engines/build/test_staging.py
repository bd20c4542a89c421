"""Directories that appear whole or not at all."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from engines.build.staging import staged_directory
from engines.bundle.checksum import CACHE_FILE
from engines.bundle.manifest import COST_FILE, MANIFEST_FILE
from service.errors import BundleError


def old_bundle(path: Path) -> Path:
    """Make what a build of another version may have left."""
    path.mkdir()
    (path / "weights").write_text("old")
    manifest = {"format_version": 0, "files": {"weights": {}}}
    (path / MANIFEST_FILE).write_text(json.dumps(manifest))
    return path


def refusal(destination: Path) -> str:
    """Return why a destination is refused, and prove that nothing was built for it."""
    with pytest.raises(BundleError) as caught, staged_directory(destination):
        pytest.fail("the block must not run")
    assert str(destination) == caught.value.path
    return str(caught.value)


def test_staged_directory_appears_when_the_block_ends(tmp_path) -> None:
    destination = tmp_path / "deep" / "bundle"

    with staged_directory(destination) as staging:
        (staging / "file").write_text("whole")
        assert not destination.exists()

    assert "whole" == (destination / "file").read_text()
    assert [destination] == list(destination.parent.iterdir())


def test_staged_directory_after_an_error_leaves_nothing(tmp_path) -> None:
    def fail() -> None:
        with staged_directory(tmp_path / "bundle") as staging:
            (staging / "file").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert [] == list(tmp_path.iterdir())


def test_staged_directory_after_an_error_leaves_the_old_one(tmp_path) -> None:
    destination = old_bundle(tmp_path / "bundle")

    with pytest.raises(RuntimeError), staged_directory(destination):
        raise RuntimeError

    assert "old" == (destination / "weights").read_text()


@pytest.mark.parametrize("name", ["weights", CACHE_FILE, COST_FILE])
def test_staged_directory_replaces_a_bundle_whole(tmp_path, name) -> None:
    destination = old_bundle(tmp_path / "bundle")
    (destination / name).write_text("old")

    with staged_directory(destination) as staging:
        (staging / "file").write_text("new")

    assert ["file"] == [path.name for path in destination.iterdir()]
    assert [destination] == list(tmp_path.iterdir())


def test_staged_directory_replaces_an_empty_directory(tmp_path) -> None:
    (tmp_path / "bundle").mkdir()

    with staged_directory(tmp_path / "bundle") as staging:
        (staging / "file").write_text("new")

    assert "new" == (tmp_path / "bundle" / "file").read_text()


@pytest.mark.parametrize("manifest", [None, "", "[]", "{}", '{"format_version": 1, "files": []}'])
def test_directory_without_a_manifest_of_ours_is_refused_before_the_block(
    tmp_path, manifest
) -> None:
    destination = tmp_path / "thesis"
    destination.mkdir()
    (destination / "chapter").write_text("years of work")
    if manifest is not None:
        (destination / MANIFEST_FILE).write_text(manifest)

    assert "holds chapter" in refusal(destination)

    assert "years of work" == (destination / "chapter").read_text()
    assert [destination] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [".git", "weights"])
def test_bundle_that_also_holds_a_directory_is_refused(tmp_path, name) -> None:
    destination = old_bundle(tmp_path / "bundle")
    (destination / name).unlink(missing_ok=True)
    (destination / name).mkdir()

    assert f"holds {name}" in refusal(destination)


def test_plain_file_is_refused(tmp_path) -> None:
    (tmp_path / "bundle").write_text("precious")

    assert "is not a directory" in refusal(tmp_path / "bundle")

    assert "precious" == (tmp_path / "bundle").read_text()


@pytest.mark.parametrize("target", ["old", "absent"])
def test_symbolic_link_is_refused(tmp_path, target) -> None:
    old_bundle(tmp_path / "old")
    (tmp_path / "link").symlink_to(tmp_path / target)

    assert "is a symbolic link" in refusal(tmp_path / "link")


@pytest.mark.parametrize("path", ["", ".", "/", "..", "a/.."])
def test_path_without_a_name_is_refused(path) -> None:
    assert "names no directory" in refusal(Path(path))


def test_destination_below_a_file_is_refused(tmp_path) -> None:
    (tmp_path / "file").write_text("")

    assert "cannot be written" in refusal(tmp_path / "file" / "bundle")


def test_directory_that_fills_during_the_block_is_kept(tmp_path) -> None:
    destination = tmp_path / "bundle"

    def fill() -> None:
        with staged_directory(destination):
            destination.mkdir()
            (destination / "chapter").write_text("years of work")

    with pytest.raises(BundleError):
        fill()

    assert [destination / "chapter"] == list(destination.iterdir())


def test_staging_of_a_killed_build_is_removed_by_the_next_good_one(tmp_path) -> None:
    destination = tmp_path / "bundle"
    killed = textwrap.dedent(
        f"""
        import os, pathlib, signal
        from engines.build.staging import staged_directory
        with staged_directory(pathlib.Path({str(destination)!r})) as staging:
            (staging / "file").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    subprocess.run([sys.executable, "-c", killed], check=False, timeout=60)  # noqa: S603
    assert 1 == len(list(tmp_path.iterdir()))

    with staged_directory(destination) as staging:
        (staging / "file").write_text("whole")

    assert [destination] == list(tmp_path.iterdir())


def test_staging_that_a_live_build_holds_is_left(tmp_path) -> None:
    destination = tmp_path / "bundle"

    with staged_directory(destination) as slow:
        with staged_directory(destination) as fast:
            assert slow != fast
        assert slow.is_dir()


@pytest.mark.parametrize("name", [".bundle.d", ".other.outrider-build.abcdefgh"])
def test_sibling_of_another_name_is_left(tmp_path, name) -> None:
    (tmp_path / name).mkdir()

    with staged_directory(tmp_path / "bundle"):
        pass

    assert (tmp_path / name).is_dir()

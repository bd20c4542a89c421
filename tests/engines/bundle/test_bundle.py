"""Loading a bundle: whole, or refused with the file that is not."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from engines.bundle.bundle import Bundle, check_tokenizer, load_bundle
from engines.bundle.checksum import CACHE_FILE
from engines.bundle.manifest import CHAT_TEMPLATE_FILE, MANIFEST_FILE, TOKENIZER_FILE
from service.errors import BundleError

WEIGHTS = "decoder.weights"


@pytest.fixture
def path(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    """A bundle to damage."""
    copy = tmp_path / "tiny"
    shutil.copytree(tiny_bundle.path, copy)
    (copy / CACHE_FILE).unlink(missing_ok=True)
    return copy


def flip_a_byte(file: Path, *, keep_times: bool = False) -> None:
    """Damage a file without changing its size."""
    facts = file.stat()
    with file.open("r+b") as damaged:
        damaged.seek(facts.st_size // 2)
        byte = damaged.read(1)
        damaged.seek(-1, os.SEEK_CUR)
        damaged.write(bytes([byte[0] ^ 1]))
    stamp = facts.st_mtime_ns if keep_times else facts.st_mtime_ns + 1
    os.utime(file, ns=(facts.st_atime_ns, stamp))


def refused(path: Path, *, fresh: bool = False) -> BundleError:
    with pytest.raises(BundleError) as caught:
        load_bundle(path, fresh=fresh)
    return caught.value


def test_bundle_that_is_whole_loads(path) -> None:
    bundle = load_bundle(path, fresh=True)

    assert bundle.graph_path.is_file()
    assert bundle.tokenizer_path.is_file()
    assert bundle.generation_config_path.is_file()
    assert "assistant" in (bundle.chat_template() or "")
    assert 32 == len(bundle.fingerprint)


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER_FILE, "decoder.onnx", "chat_template.jinja"])
def test_bundle_without_a_file_names_it(path, name) -> None:
    (path / name).unlink()

    assert str(path / name) == refused(path).path


def test_bundle_with_a_shortened_file_names_both_sizes(path) -> None:
    size = (path / WEIGHTS).stat().st_size
    os.truncate(path / WEIGHTS, size - 1)

    assert f"has {size - 1} bytes, the manifest says {size}" in str(refused(path))


def test_bundle_with_a_changed_byte_is_refused(path) -> None:
    load_bundle(path)
    flip_a_byte(path / WEIGHTS)

    assert "checksum differs" in str(refused(path))


def test_bundle_with_a_silent_fault_is_found_by_a_fresh_load(path) -> None:
    """A fault that leaves size and time alone is beyond the remembered checksum."""
    load_bundle(path)
    flip_a_byte(path / WEIGHTS, keep_times=True)

    load_bundle(path)

    assert str(path / WEIGHTS) == refused(path, fresh=True).path


def test_bundle_loads_with_a_broken_checksum_cache(path) -> None:
    (path / CACHE_FILE).write_text("[")

    assert path == load_bundle(path).path


def test_bundle_that_cannot_be_written_loads(path) -> None:
    """A checksum cache that cannot be stored only costs time."""
    (path / CACHE_FILE).mkdir()

    assert path == load_bundle(path).path


def test_bundle_whose_manifest_omits_a_needed_file_is_refused(path) -> None:
    document = json.loads((path / MANIFEST_FILE).read_text())
    del document["files"][TOKENIZER_FILE]
    (path / MANIFEST_FILE).write_text(json.dumps(document))

    error = refused(path)

    assert (str(path / TOKENIZER_FILE), "files") == (error.path, error.field)


def test_tokenizer_of_a_bundle_matches_its_fingerprint(path) -> None:
    check_tokenizer(load_bundle(path))


def test_tokenizer_with_another_vocabulary_is_refused(path) -> None:
    tokenizer = json.loads((path / TOKENIZER_FILE).read_text())
    ids = tokenizer["model"]["vocab"]
    ids["a"], ids["b"] = ids["b"], ids["a"]
    bundle = load_bundle(path)
    (path / TOKENIZER_FILE).write_text(json.dumps(tokenizer))

    with pytest.raises(BundleError) as caught:
        check_tokenizer(bundle)

    assert "tokenizer_fingerprint" == caught.value.field


def test_remembered_checksum_that_is_damaged_only_costs_time(path) -> None:
    load_bundle(path)
    known = json.loads((path / CACHE_FILE).read_text())
    (path / CACHE_FILE).write_text(json.dumps(dict.fromkeys(known, 7)))

    load_bundle(path)

    assert known == json.loads((path / CACHE_FILE).read_text())


def rewrite(path: Path, name: str, content: bytes) -> None:
    """Replace a file and the manifest's entry for it, as a faulty tool would."""
    (path / name).write_bytes(content)
    document = json.loads((path / MANIFEST_FILE).read_text())
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    document["files"][name] = entry
    (path / MANIFEST_FILE).write_text(json.dumps(document))


@pytest.mark.parametrize("name", [CHAT_TEMPLATE_FILE, TOKENIZER_FILE])
def test_text_that_is_not_utf8_names_its_file(path, name) -> None:
    rewrite(path, name, b"\xff\xfe{")

    assert str(path / name) == refused(path).path


def test_manifest_that_is_not_utf8_names_its_file(path) -> None:
    (path / MANIFEST_FILE).write_bytes(b"\xff\xfe{")

    assert str(path / MANIFEST_FILE) == refused(path).path


def test_tokenizer_with_more_tokens_than_the_model_is_refused(path) -> None:
    tokenizer = json.loads((path / TOKENIZER_FILE).read_text())
    tokenizer["model"]["vocab"]["more"] = len(tokenizer["model"]["vocab"])
    rewrite(path, TOKENIZER_FILE, json.dumps(tokenizer).encode())

    error = refused(path)

    assert (str(path / TOKENIZER_FILE), "model.vocab") == (error.path, error.field)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"model": {"vocab": [], "merges": []}}',
        '{"model": {"vocab": {"a": 1, "b": "2"}, "merges": []}}',
        '{"model": {"vocab": {"a": 1}, "merges": [[1, 2]]}}',
    ],
)
def test_tokenizer_that_is_no_bpe_is_refused(path, text) -> None:
    bundle = load_bundle(path)
    (path / TOKENIZER_FILE).write_text(text)

    with pytest.raises(BundleError):
        check_tokenizer(bundle)

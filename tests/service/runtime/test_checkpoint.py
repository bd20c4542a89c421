import json

import pytest

from service.errors import BundleError
from service.generation.config import GenerationOverrides
from service.runtime.checkpoint import read_generation_defaults


def written(tmp_path, document):
    path = tmp_path / "generation_config.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_defaults_keep_what_is_declared_and_leave_the_rest_open(tmp_path):
    document = {"do_sample": True, "temperature": 1, "top_k": 20, "eos_token_id": 2, "top_p": None}

    defaults = read_generation_defaults(written(tmp_path, document))

    assert GenerationOverrides(do_sample=True, temperature=1, top_k=20) == defaults


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "must hold a JSON object"),
        ({"top_k": 1.5}, "top_k: must be int, found 1.5"),
        ({"do_sample": 1}, "do_sample: must be bool, found 1"),
        ({"temperature": "hot"}, "temperature: must be float"),
        ({"top_k": True}, "top_k: must be int, found True"),
        ({"top_p": 1.5}, "top_p"),
    ],
)
def test_broken_defaults_are_a_bundle_error_that_names_file_and_field(
    tmp_path, document, complaint
):
    path = written(tmp_path, document)

    with pytest.raises(BundleError) as error:
        read_generation_defaults(path)

    assert str(path) in str(error.value)
    assert complaint in str(error.value)


def test_missing_defaults_are_a_bundle_error(tmp_path):
    with pytest.raises(BundleError, match="cannot be read"):
        read_generation_defaults(tmp_path / "generation_config.json")

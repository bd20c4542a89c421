"""The composition: settings and bundles in, loaded models out, and what is refused on the way."""

import hashlib
import json
import re
import shutil
from dataclasses import replace

import pytest
from google.protobuf import json_format

from engines.build.synthetic import build_tiny_bundle
from engines.bundle.fingerprint import tokenizer_fingerprint
from outrider.v1 import generation_service_pb2
from service.__main__ import build_model, inspect_bundle, load_models
from service.commands.engines import BuildRequest
from service.commands.serve import ready_text
from service.errors import BundleError, IncompatibleDraft, InvalidSettings
from service.rpc.validation import validate
from service.runtime.request import ChatPrompt, SpeculationMode
from service.runtime.settings import EngineKind, ModelSettings, Settings
from service.speculation.capability import DraftSource, Ready, Unavailable
from service.text.conversation import ChatMessage

THREADS = 2


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Return the place of a tiny random model's bundle."""
    path = tmp_path_factory.mktemp("models") / "tiny"
    build_tiny_bundle(path)
    return path


def load(**model):
    settings = ModelSettings(threads=THREADS, max_slots=2, max_context=128)
    return load_models(Settings(model=replace(settings, **model)), lambda _: None)


def onnx(*bundles, **model):
    return load(engine=EngineKind.ONNX, bundles=tuple(map(str, bundles)), **model)


def modes(model):
    return [(proposer.name, proposer.mode) for proposer in model.proposers]


def test_scripted_model_loads_with_its_proposers():
    (model,) = load(engine=EngineKind.SCRIPTED)

    limits = model.target.limits
    assert ("scripted", 2, 128) == (model.name, limits.max_slots, limits.max_context)
    assert {SpeculationMode.DRAFT_MODEL} == {mode for _, mode in modes(model)}


def test_dialect_is_recognised_from_the_template_at_load(tiny):
    (scripted,), (bundle,) = load(engine=EngineKind.SCRIPTED), onnx(tiny)

    assert ["hermes", "plain"] == [scripted.text.dialect.name, bundle.text.dialect.name]


def test_every_model_names_its_tokenizer(tiny):
    (scripted,), (built,) = load(engine=EngineKind.SCRIPTED), onnx(tiny)
    names = {model.information.tokenizer_fingerprint for model in (scripted, built)}
    assert [32, 32] == [len(name) for name in names]


def test_bundle_loads_as_a_model_with_prompt_lookup(tiny):
    (model,) = onnx(tiny)

    assert ("tiny", 2, 128) == (
        model.name,
        model.target.limits.max_slots,
        model.target.limits.max_context,
    )
    assert [("prompt_lookup", SpeculationMode.PROMPT_LOOKUP)] == modes(model)
    assert Unavailable() == model.capability
    assert model.information.bit_exact
    assert model.text.has_chat_template


def test_chat_of_a_bundle_is_rendered_by_its_own_template(tiny):
    (model,) = onnx(tiny)

    rendered = model.text.render(ChatPrompt((ChatMessage("user", "hi"),)), max_characters=100)

    assert "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n" == rendered


def test_named_bundles_load_under_their_names_in_order(tiny):
    assert ["a", "tiny"] == [model.name for model in onnx(f"a={tiny}", tiny)]


def test_draft_bundle_is_preferred_over_prompt_lookup_for_the_first_model(tiny):
    first, second = onnx(f"a={tiny}", f"b={tiny}", draft_bundle=str(tiny))

    assert ["draft_model", "prompt_lookup"] == [name for name, _ in modes(first)]
    assert ["prompt_lookup"] == [name for name, _ in modes(second)]
    assert Ready(DraftSource.SEPARATE) == first.capability


def test_prompt_lookup_can_be_left_out(tiny):
    (model,) = onnx(tiny, prompt_lookup=False)

    assert [] == modes(model)


def test_two_models_of_one_name_are_refused(tiny):
    with pytest.raises(InvalidSettings, match=r"model\.bundles.*'tiny'"):
        onnx(tiny, tiny)


def test_context_above_the_models_own_is_refused(tiny):
    with pytest.raises(InvalidSettings, match=r"model\.max_context.*100000"):
        onnx(tiny, max_context=100_000)


def test_the_shortest_context_of_the_settings_loads(tmp_path):
    """The cost of a pass is measured within it."""
    build_tiny_bundle(tmp_path / "short")

    (model,) = onnx(tmp_path / "short", max_context=16)

    assert 16 == model.target.limits.max_context


def test_tensorrt_is_refused_by_name():
    with pytest.raises(InvalidSettings, match=r"model\.engine.*tensorrt"):
        load(engine=EngineKind.TENSORRT)


def test_scripted_engine_takes_no_bundle(tiny):
    with pytest.raises(InvalidSettings, match=r"model\.engine"):
        load(engine=EngineKind.SCRIPTED, bundles=(str(tiny),))


def test_missing_bundle_says_where_and_how_to_build(tmp_path):
    with pytest.raises(BundleError, match="outrider build") as error:
        onnx(tmp_path / "none")

    assert str(tmp_path / "none") == error.value.path


def test_damaged_bundle_names_the_file(tiny, tmp_path):
    for file in tiny.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "tokenizer.json").write_text("{}")

    with pytest.raises(BundleError) as error:
        onnx(tmp_path)

    assert str(tmp_path / "tokenizer.json") == error.value.path


def drop_a_merge(bundle):
    """Make a whole bundle's tokenizer another one of the same size."""
    tokenizer = json.loads((bundle / "tokenizer.json").read_text())
    ids, merges = tokenizer["model"]["vocab"], tokenizer["model"]["merges"]
    merges.pop()
    content = json.dumps(tokenizer).encode()
    manifest = json.loads((bundle / "manifest.json").read_text())
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest["files"]["tokenizer.json"] = entry
    vocabulary = sorted(ids, key=ids.get)
    manifest["tokenizer_fingerprint"] = tokenizer_fingerprint(vocabulary, merges).hex()
    (bundle / "tokenizer.json").write_bytes(content)
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def test_draft_of_another_tokenizer_is_refused(tiny, tmp_path):
    other = tmp_path / "other"
    build_tiny_bundle(other)
    drop_a_merge(other)

    with pytest.raises(IncompatibleDraft, match="tokenizer fingerprint"):
        onnx(tiny, draft_bundle=str(other))


def test_build_of_a_missing_source_names_it(tmp_path):
    with pytest.raises(BundleError) as error:
        build_model(BuildRequest(tmp_path / "no.gguf", tmp_path / "new", "w8", "tsman"))

    assert str(tmp_path / "no.gguf") == error.value.path


@pytest.mark.parametrize("force", [False, True])
def test_build_over_a_foreign_directory_names_it(tmp_path, force):
    source = tmp_path / "model.gguf"
    source.write_bytes(b"never read as a model")
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter").write_text("years of work")

    with pytest.raises(BundleError) as error:
        build_model(BuildRequest(source, thesis, "w8", "tsman", force=force))

    assert str(thesis) == error.value.path
    assert "years of work" == (thesis / "chapter").read_text()


def test_inspection_of_a_graph_that_differs_from_the_manifest_names_it(tiny, tmp_path):
    bundle = tmp_path / "tiny"
    shutil.copytree(tiny, bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["graph"]["inputs"]["ids"]["dtype"] = "int32"
    (bundle / "manifest.json").write_text(json.dumps(manifest))

    with pytest.raises(BundleError) as error:
        inspect_bundle(bundle)

    assert (str(bundle / "decoder.onnx"), "graph.inputs") == (error.value.path, error.value.field)


def test_inspection_verifies_and_describes(tiny):
    description = inspect_bundle(tiny)

    assert "tiny" == description["bundle"]["model"]
    assert "tokenizer.json" in description["sha256, verified"]
    json.dumps(description)


def calls_to_try(text):
    """Return the method and the body of each call that a ready text proposes."""
    single = re.findall(r"-d '(.+)' \S+ \S+/(\w+)$", text, re.MULTILINE)
    many = text.partition("<<'END'\n")[2].splitlines()[:-1]
    return [(method, body) for body, method in single] + [("Generate", line) for line in many]


def test_calls_to_try_are_valid_requests(tiny):
    calls = calls_to_try(ready_text("127.0.0.1:7", onnx(tiny)))

    for method, body in calls:
        request = getattr(generation_service_pb2, f"{method}Request")
        validate(json_format.Parse(body, request()))
    assert ["Complete", "StreamGenerate", "Generate", "Generate"] == [call[0] for call in calls]

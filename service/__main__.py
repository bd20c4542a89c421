"""The command `outrider`, and the one module where the service meets its engines.

Engines are imported inside functions, so that a command loads only what it uses.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from service.commands.engines import BuildReport, BuildRequest, Description, Engines, Say
from service.errors import BundleError, InvalidSettings
from service.runtime.checkpoint import read_generation_defaults
from service.runtime.models import LoadedModel, LoadedProposer, ModelInformation
from service.runtime.request import SpeculationMode
from service.runtime.settings import EngineKind, ModelSettings, Settings
from service.runtime.text import ModelText
from service.speculation.capability import DraftSource, Ready, Unavailable
from service.text.chat import ChatTemplate
from service.text.dialects.recognition import Recogniser
from service.text.tokenizer import load_tokenizer, parse_tokenizer

if TYPE_CHECKING:
    from engines.bundle.bundle import Bundle
    from engines.onnx.decoder import Decoder
    from service.speculation.cost import CostCurve


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    # gRPC reads this once, when it is loaded; its native lines would stand among ours.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from service.commands.run import run

    engines = Engines(load_models, build_model, inspect_bundle)
    return run(sys.argv[1:] if argv is None else argv, engines)


def load_models(settings: Settings, say: Say) -> tuple[LoadedModel, ...]:
    """Load every model that the settings name, the default one first.

    Raises:
        InvalidSettings: the engine is not part of this version, or two models share a name.
        BundleError: a bundle is missing, damaged or foreign.
        IncompatibleDraft: the draft has another tokenizer than the model it is to draft for.
    """
    kind = settings.model.engine
    if kind is EngineKind.TENSORRT:
        message = "tensorrt is not part of this version; onnx runs on the CPU"
        raise InvalidSettings("model.engine", message)
    if kind is EngineKind.SCRIPTED:
        return (_scripted_model(settings),)
    return _onnx_models(settings, say)


# -- The scripted engine ------------------------------------------------------


def _scripted_model(settings: Settings) -> LoadedModel:
    from engines.bundle.fingerprint import tokenizer_fingerprint
    from engines.scripted.clock import MonotonicClock
    from engines.scripted.model import ScriptedSettings, scripted_model

    if settings.model.bundles or settings.model.draft_bundle:
        raise InvalidSettings("model.engine", "scripted takes no bundles")
    usual = ScriptedSettings()
    scripted = scripted_model(
        ScriptedSettings(
            max_slots=settings.model.max_slots,
            max_context=settings.model.max_context or usual.max_context,
        ),
        MonotonicClock(),
    )
    template = ChatTemplate(
        scripted.chat_template,
        path=scripted.name,
        bos_token=scripted.bos_token,
        eos_token=scripted.eos_token,
    )
    tokenizer = parse_tokenizer(scripted.tokenizer_json, scripted.name)
    ids = json.loads(scripted.tokenizer_json)["model"]["vocab"]
    return LoadedModel(
        name=scripted.name,
        target=scripted.target,
        text=ModelText(
            scripted.name,
            tokenizer,
            template,
            Recogniser(template, tokenizer, scripted.eos_token_ids).dialect(),
            eos_token_ids=scripted.eos_token_ids,
        ),
        eos_token_ids=scripted.eos_token_ids,
        proposers=tuple(
            LoadedProposer(name, SpeculationMode.DRAFT_MODEL, proposer)
            for name, proposer in scripted.proposers.items()
        ),
        defaults=scripted.defaults,
        capability=Ready(DraftSource.SEPARATE),
        scheduler=settings.scheduler,
        information=ModelInformation(
            architecture="scripted",
            engine="scripted",
            tokenizer_fingerprint=tokenizer_fingerprint(sorted(ids, key=ids.get), ()),
            bit_exact=True,
        ),
    )


# -- ONNX Runtime -------------------------------------------------------------


def _onnx_models(settings: Settings, say: Say) -> tuple[LoadedModel, ...]:
    from engines.build.default_model import default_bundle_path

    named = settings.model.named_bundles() or ((None, default_bundle_path()),)
    opened = [(name, _opened(path)) for name, path in named]
    _require_distinct([name or bundle.manifest.model_id for name, bundle in opened])
    draft = settings.model.draft_bundle
    drafting = None if draft is None else _opened(Path(draft))
    if settings.model.engine is EngineKind.AUTO:
        say("engine auto: onnx, on the CPU; this version has no other for models")
    (name, first), *others = opened
    default = _onnx_model(settings, name, first, drafting, say)
    return (default, *(_onnx_model(settings, *other, None, say) for other in others))


def _require_distinct(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            message = f"two models are named {name!r}; write NAME=DIR"
            raise InvalidSettings("model.bundles", message)


def _threads(settings: ModelSettings) -> int:
    return settings.threads or len(os.sched_getaffinity(0))


def _opened(path: Path) -> Bundle:
    """Open a bundle; where there is none, say how to get one."""
    from engines.bundle.bundle import load_bundle
    from engines.bundle.manifest import MANIFEST_FILE

    if not (path / MANIFEST_FILE).is_file():
        message = "holds no bundle; `outrider build` makes one (see outrider build --help)"
        raise BundleError(message, path=str(path))
    return load_bundle(path)


def _onnx_model(
    settings: Settings, name: str | None, bundle: Bundle, drafting: Bundle | None, say: Say
) -> LoadedModel:
    from engines.onnx.target import OnnxTarget

    say(f"loading {bundle.path}")
    manifest = bundle.manifest
    decoder = _decoder(bundle, settings.model)
    curve = _cost_curve(bundle, decoder, say)
    proposers = _draft_proposers(settings, bundle, curve, drafting, say)
    text = _text(bundle, name or manifest.model_id)
    # The first constraint would do it too, and hold up every request meanwhile.
    text.prepare_constraints()
    return LoadedModel(
        name=text.model,
        target=OnnxTarget(decoder),
        text=text,
        eos_token_ids=frozenset(manifest.tokens.eos),
        proposers=(*proposers, *_lookup_proposers(settings.model, curve)),
        defaults=read_generation_defaults(bundle.generation_config_path),
        capability=Ready(DraftSource.SEPARATE) if proposers else Unavailable(),
        scheduler=settings.scheduler,
        information=ModelInformation(
            architecture=manifest.architecture,
            engine="onnxruntime-cpu",
            weights=manifest.graph.weights,
            tokenizer_fingerprint=bundle.fingerprint,
            bit_exact=_is_bit_exact(bundle),
            cache_bytes=decoder.memory.limit_bytes,
        ),
    )


def _decoder(bundle: Bundle, settings: ModelSettings) -> Decoder:
    from engines.onnx.decoder import Decoder

    most = bundle.manifest.geometry.context_length
    wanted = most if settings.max_context is None else settings.max_context
    if wanted > most:
        message = f"{wanted} is above what {bundle.manifest.model_id} can: {most}"
        raise InvalidSettings("model.max_context", message)
    return Decoder(
        bundle, max_slots=settings.max_slots, max_context=wanted, threads=_threads(settings)
    )


def _cost_curve(bundle: Bundle, decoder: Decoder, say: Say) -> CostCurve:
    from engines.onnx.cost import cost_curve

    curve = cost_curve(bundle, decoder)
    plain, five = curve.milliseconds(1, 1), curve.milliseconds(1, 5)
    say(f"a pass of one row takes {plain:.1f} ms, of five rows {five:.1f} ms")
    return curve


def _draft_proposers(
    settings: Settings, bundle: Bundle, curve: CostCurve, drafting: Bundle | None, say: Say
) -> tuple[LoadedProposer, ...]:
    """Return the draft model as a proposer, if one is configured."""
    from engines.onnx.passes import LaneInput
    from engines.proposers.draft_model.proposer import DraftCosts, DraftModel, DraftSettings

    if drafting is None:
        return ()
    say(f"loading {drafting.path}, which drafts")
    _require_one_tokenizer(bundle, drafting)
    context = settings.model.max_context or bundle.manifest.geometry.context_length
    most = min(context, drafting.manifest.geometry.context_length)
    sized = replace(settings.model, max_context=most)
    decoder = _decoder(drafting, sized)
    costs = DraftCosts(curve, _cost_curve(drafting, decoder, say))
    wanted = DraftSettings(settings.model.max_slots, bundle.manifest.geometry.vocabulary)
    proposer = DraftModel(decoder, LaneInput, costs, wanted)
    return (LoadedProposer("draft_model", SpeculationMode.DRAFT_MODEL, proposer),)


def _require_one_tokenizer(bundle: Bundle, drafting: Bundle) -> None:
    """Refuse a draft of another tokenizer; vocabularies are read only to say where it differs."""
    from engines.proposers.draft_model.compatibility import (
        TokenizerIdentity,
        require_same_tokenizer,
    )

    if bundle.fingerprint == drafting.fingerprint:
        return
    require_same_tokenizer(
        *(
            TokenizerIdentity(
                each.fingerprint, load_tokenizer(each.tokenizer_path).vocabulary.tokens
            )
            for each in (bundle, drafting)
        )
    )


def _lookup_proposers(settings: ModelSettings, curve: CostCurve) -> tuple[LoadedProposer, ...]:
    from engines.proposers.prompt_lookup.proposer import PromptLookup

    if not settings.prompt_lookup:
        return ()
    proposer = PromptLookup(curve)
    return (LoadedProposer("prompt_lookup", SpeculationMode.PROMPT_LOOKUP, proposer),)


def _text(bundle: Bundle, name: str) -> ModelText:
    tokenizer = load_tokenizer(bundle.tokenizer_path)
    source, special = bundle.chat_template(), bundle.manifest.tokens
    eos_token_ids = frozenset(special.eos)
    if source is None:
        return ModelText(name, tokenizer, eos_token_ids=eos_token_ids)
    tokens = tokenizer.vocabulary.tokens
    ends = special.eos[:1]
    template = ChatTemplate(
        source,
        path=str(bundle.path),
        bos_token="" if special.bos is None else tokens[special.bos].decode(),
        eos_token=tokens[ends[0]].decode() if ends else "",
    )
    dialect = Recogniser(template, tokenizer, eos_token_ids).dialect()
    return ModelText(name, tokenizer, template, dialect, eos_token_ids=eos_token_ids)


def _is_bit_exact(bundle: Bundle) -> bool:
    """Whether rows were proved not to depend on how many a pass has: they were in this form."""
    from engines.build.onnx_emitter import EmitOptions

    graph, proved = bundle.manifest.graph, EmitOptions()
    return (graph.weights, graph.lowering) == (proved.weights.value, proved.lowering.value)


# -- Bundles ------------------------------------------------------------------


def build_model(request: BuildRequest) -> BuildReport:
    """Build a bundle unless one that is whole and alike is there.

    Raises:
        BundleError: the source cannot be obtained, or not represented exactly.
    """
    from engines.build.build import build_bundle
    from engines.build.default_model import (
        GGUF_SHA256,
        default_bundle_path,
        default_cache_path,
        obtain_default_gguf,
    )
    from engines.build.onnx_emitter import EmitOptions, Lowering, Weights
    from engines.build.present import is_present
    from engines.build.progress import progress_on
    from engines.build.staging import require_replaceable
    from engines.bundle.checksum import sha256_file

    path = request.destination or default_bundle_path()
    options = EmitOptions(Weights(request.weights), Lowering(request.lowering))
    if request.source is not None and not request.source.is_file():
        raise BundleError("is not a file", path=str(request.source))
    if not request.force:
        wanted = GGUF_SHA256 if request.source is None else sha256_file(request.source)
        if is_present(path, wanted, options):
            return BuildReport(path, was_there=True)
    require_replaceable(path)
    with progress_on(sys.stderr) as progress:
        source = request.source or obtain_default_gguf(default_cache_path(), progress)
        build_bundle(source, path, options, progress)
    return BuildReport(path, was_there=False)


def inspect_bundle(path: Path | None) -> Description:
    """Verify every byte of a bundle, open its graph, and describe it.

    Raises:
        BundleError: the bundle is missing, damaged or foreign.
    """
    from engines.build.default_model import default_bundle_path
    from engines.bundle.bundle import load_bundle
    from engines.bundle.describe import describe
    from engines.onnx.session import open_session

    bundle = load_bundle(path or default_bundle_path(), fresh=True)
    open_session(bundle, threads=1)
    return describe(bundle)


if __name__ == "__main__":
    sys.exit(main())

"""A generation request in portable form, and the messages it is answered with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from service.errors import OutriderError
from service.generation.config import GenerationOverrides, ResolvedGenerationConfig
from service.generation.finish import FinishReason, MatchedStop
from service.speculation.contract import Tokens
from service.speculation.publication import PublishedRound
from service.speculation.statistics import SequenceStatistics
from service.text.conversation import ChatMessage
from service.text.language import Language
from service.text.tools import NamedTool, Tool, ToolChoice


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """Prompt text, tokenised as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """Prompt token ids."""

    token_ids: Tokens


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation, rendered by the bundle's own template.

    `template_arguments` are further variables of the template. An empty `dialect` has it
    recognised from the template.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | NamedTool | None = None
    parallel_tool_calls: bool = True
    template_arguments: Mapping[str, object] = field(default_factory=dict)
    dialect: str = ""


Prompt = TextPrompt | TokenPrompt | ChatPrompt


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop as requested: text or a token id, exactly one of them."""

    text: str | None = None
    token_id: int | None = None


class SpeculationMode(Enum):
    """How drafts are to be found."""

    AUTO = "auto"
    NONE = "none"
    PROMPT_LOOKUP = "prompt_lookup"
    DRAFT_MODEL = "draft_model"
    MTP = "mtp"
    EAGLE3 = "eagle3"
    SHARED_KV = "shared_kv"


@dataclass(frozen=True, slots=True)
class SpeculationRequest:
    """What a client asked of speculation; None leaves a choice to the server."""

    mode: SpeculationMode = SpeculationMode.AUTO
    proposer: str | None = None
    num_speculative_tokens: int | None = None
    lookahead: bool | None = None


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One request whose fields are each valid; `caller` scopes its id.

    `timeout` is in seconds from its arrival, the RPC's own deadline included.
    """

    request_id: str
    caller: str
    model: str
    prompt: Prompt
    overrides: GenerationOverrides = field(default_factory=GenerationOverrides)
    seed: int | None = None
    stops: tuple[Stop, ...] = ()
    include_stop: bool = False
    stop_on_eos: bool = True
    eos_token_id: int | None = None
    max_context: int | None = None
    constraint: Language | None = None
    speculation: SpeculationRequest = field(default_factory=SpeculationRequest)
    timeout: float | None = None
    component_timings: bool = False

    @property
    def has_grammar(self) -> bool:
        """Whether what its output must match may have to be compiled first."""
        offers_tools = isinstance(self.prompt, ChatPrompt) and bool(self.prompt.tools)
        return self.constraint is not None or offers_tools


class SpeculationOffReason(Enum):
    """Why a request is not speculated for."""

    REQUESTED = "requested"
    NO_PROPOSER = "no_proposer"
    SETTING = "setting"


@dataclass(frozen=True, slots=True)
class ResolvedSpeculation:
    """What speculation a request got.

    `num_speculative_tokens` is the most proposed in a round, and what is always
    asked for where `fixed`. Where speculation is off, `off_reason` and
    `off_detail` (the same in words, naming the field) say why.
    """

    mode: SpeculationMode
    proposer: str | None = None
    num_speculative_tokens: int = 0
    fixed: bool = False
    lookahead: bool = False
    off_reason: SpeculationOffReason | None = None
    off_detail: str = ""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request was queued with these resolved settings; `timeout` is in seconds."""

    request_id: str
    model: str
    config: ResolvedGenerationConfig
    seed: int
    max_tokens: int
    prompt_tokens: int
    eos_token_ids: frozenset[int]
    max_context: int
    speculation: ResolvedSpeculation
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The last message of a request that ended without a failure."""

    reason: FinishReason
    matched_stop: MatchedStop | None
    prompt_tokens: int
    completion_tokens: int
    statistics: SequenceStatistics
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """The last message of a request that failed; what was delivered stays valid."""

    error: OutriderError
    statistics: SequenceStatistics | None


Message = PublishedRound | Ended | Failed

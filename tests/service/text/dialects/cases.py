"""Outputs as models write them, and wrong ones, with the events that they are."""

from service.text.dialect import Turn
from service.text.dialects import deepseek as ds
from service.text.tools import NamedTool, ToolChoice
from tests.service.text.dialects.readings import (
    TOOLS,
    Case,
    broken_off,
    called,
    said,
    thought,
)

PRAGUE = '{"city": "Prague"}'
TRICKY = r'{"a": "</tool_call>}\"]<tool_call>[ARGS]", "b": [{}, -1.5e3, true, null], "c": "é👩"}'
NO_CHOICE = Turn("", TOOLS, ToolChoice.NONE)
NO_TOOLS = Turn("", (), ToolChoice.AUTO)
ONLY_WEATHER = Turn("", TOOLS, NamedTool("weather"))
CALL = f'{{"name": "weather", "arguments": {PRAGUE}}}'
PARAMETERS = f'{{"name": "weather", "parameters": {PRAGUE}}}'


def thinking(prompt):
    return Turn(prompt, TOOLS, ToolChoice.AUTO)


THINK = [
    Case("reasoning then text", "think", "<think>hm</think>So.", thought("hm") + said("So.")),
    Case(
        "white space beside the tags is theirs",
        "think",
        " \n<think>\n\n a b \n\n</think>\n\nSo. \n",
        thought("a b") + said("So. \n"),
    ),
    Case("no reasoning", "think", " \nJust text. ", said(" \nJust text. ")),
    Case("empty reasoning", "think", "<think>\n\n</think>\n\nSo.", said("So.")),
    Case(
        "opened by the prompt",
        "think",
        "hm\n</think>\nSo.",
        thought("hm") + said("So."),
        thinking("…<think>\n"),
    ),
    Case(
        "opened and closed by the prompt",
        "think",
        "So.",
        said("So."),
        thinking("…<think>\n\n</think>\n\n"),
    ),
    Case("closing tag that closes nothing", "think", "a</think>b", said("a</think>b")),
    Case("a tag that is spoken of", "think", "Use <think>.", said("Use <think>.")),
    Case(
        "a tag that is spoken of in the reasoning",
        "think",
        "<think>a <think> b</think>c",
        thought("a <think> b") + said("c"),
    ),
    Case(
        "unfinished tags",
        "think",
        "<think>a </thinx </thi",
        thought("a </thinx </thi"),
    ),
    Case("unfinished opening", "think", " <thi", said(" <thi")),
    Case("calls are text", "think", "<tool_call>{}</tool_call>", said("<tool_call>{}</tool_call>")),
]

HERMES = [
    Case("one call", "hermes", f"<tool_call>\n{CALL}\n</tool_call>", called(PRAGUE)),
    Case(
        "reasoning, text and calls",
        "hermes",
        f"<think>\nhm\n</think>\n\nLet me.\n<tool_call>\n{CALL}\n</tool_call>\n"
        f"<tool_call>\n{CALL}\n</tool_call> Done.\n",
        thought("hm") + said("Let me.") + called(PRAGUE) + called(PRAGUE, 1) + said("Done.\n"),
    ),
    Case(
        "arguments before the name",
        "hermes",
        f'<tool_call>{{"arguments" : {TRICKY} , "name":"weather"}}</tool_call>',
        called(TRICKY),
    ),
    Case(
        "other members, an id, an escaped name",
        "hermes",
        '<tool_call>{"type":"function","x":[{"name":1}],"n":-0.5,"id":"abc",'
        r'"n\u0061me":"w\u0065ather","parameters":{}}</tool_call>',
        called("{}", named="abc"),
    ),
    Case(
        "an id after the name is too late",
        "hermes",
        '<tool_call>{"name":"weather","id":"abc","arguments":{}}</tool_call>',
        called("{}"),
    ),
    Case(
        "markers and braces inside strings",
        "hermes",
        f'<tool_call>{{"name":"weather","arguments":{TRICKY}}}</tool_call>',
        called(TRICKY),
    ),
    Case(
        "a stray marker before a call",
        "hermes",
        f"see <tool_call> or\n<tool_call><tool_call>{CALL}</tool_call>",
        said("see <tool_call> or\n<tool_call>") + called(PRAGUE),
    ),
    Case(
        "a marker in what turns out to be text",
        "hermes",
        f'<tool_call>{{"x":"<tool_call>{CALL}</tool_call>',
        said('<tool_call>{"x":"') + called(PRAGUE),
    ),
    *(
        Case(f"text: {why}", "hermes", text, said(text))
        for why, text in {
            "an unknown tool": '\n<tool_call>{"name":"fly","arguments":{}}\n</tool_call>',
            "no JSON": "a <tool_call>weather</tool_call>",
            "no members": "<tool_call>{}</tool_call>",
            "no name": '<tool_call>{"arguments":{}}</tool_call>',
            "a name that is none": '<tool_call>{"name":7,"arguments":{}}</tool_call>',
            "arguments that are none": '<tool_call>{"arguments":[],"name":"weather"}</tool_call>',
            "arguments twice": '<tool_call>{"arguments":{},"parameters":{},"name":"weather"}',
            "bad JSON before the name": '<tool_call>{"a":01,"name":"weather","arguments":{}}',
            "an end before the name": 'a \n<tool_call>\n{"arguments":{"city":"Pr',
            "an unfinished marker": "hello \n<tool_call",
            "a closing marker": "a</tool_call>b",
        }.items()
    ),
    Case(
        "an end in the arguments",
        "hermes",
        '<tool_call>{"name":"weather","arguments":{"city":"Pr',
        broken_off('{"city":"Pr'),
    ),
    Case("an end after the name", "hermes", '<tool_call>{"name":"weather" ', broken_off("")),
    Case("an end in the closing marker", "hermes", f"<tool_call>{CALL}\n</tool_", called(PRAGUE)),
    Case("an end in the reasoning", "hermes", "<think>hm <tool_call>", thought("hm <tool_call>")),
    Case(
        "one tool is chosen",
        "hermes",
        f"<tool_call>{CALL}</tool_call>",
        called(PRAGUE),
        ONLY_WEATHER,
    ),
    *(
        Case(
            f"calls are text: {why}",
            "hermes",
            f"<think>a</think>\n<tool_call>{CALL}</tool_call>",
            thought("a") + said(f"<tool_call>{CALL}</tool_call>"),
            turn,
        )
        for why, turn in {"no tools": NO_TOOLS, "the choice is none": NO_CHOICE}.items()
    ),
]

LLAMA3_JSON = [
    Case("one call", "llama3_json", PARAMETERS, called(PRAGUE)),
    Case(
        "several calls",
        "llama3_json",
        f" {PARAMETERS}; {CALL} ;\n{PARAMETERS}",
        called(PRAGUE) + called(PRAGUE, 1) + called(PRAGUE, 2),
    ),
    Case(
        "text behind a call", "llama3_json", f"{PARAMETERS}\nDone.", called(PRAGUE) + said("Done.")
    ),
    *(
        Case(f"text: {why}", "llama3_json", text, said(text))
        for why, text in {
            "a call behind text": f" So: {PARAMETERS}",
            "an unknown tool": f' {{"name":"fly","parameters":{{}}}};{PARAMETERS}',
            "another object": f'\n{{"a": {CALL}}}',
            "white space": " \n ",
        }.items()
    ),
    Case("no tools", "llama3_json", PARAMETERS, said(PARAMETERS), NO_TOOLS),
    Case("the choice is none", "llama3_json", PARAMETERS, said(PARAMETERS), NO_CHOICE),
]

TAG = "<|python_tag|>"
LLAMA3_PYTHON = [
    Case(
        "calls in JSON",
        "llama3_python",
        f"Let me. {TAG}{PARAMETERS}; {PARAMETERS}",
        said("Let me.") + called(PRAGUE) + called(PRAGUE, 1),
    ),
    Case(
        "a call as in Python",
        "llama3_python",
        f'{TAG}brave_search.call(query="a \\"b\\" (c)", n=-2, x=[True, None, {{"k": 1.5}}])',
        called('{"query":"a \\"b\\" (c)","n":-2,"x":[true,null,{"k":1.5}]}', name="brave_search"),
    ),
    Case(
        "both",
        "llama3_python",
        f"{TAG}brave_search.call(q='it\\'s'); weather.call()",
        called('{"q":"it\'s"}', name="brave_search") + called("{}", 1),
    ),
    *(
        Case(f"text: {why}", "llama3_python", text, said(text))
        for why, text in {
            "code": f"a {TAG}import os\nprint(os.getcwd())",
            "an unknown tool": f'{TAG}fly.call(to="Prague")',
            "another object": f'{TAG}{{"a": 1}}',
            "no tag": f" {PARAMETERS}",
            "long code": f"{TAG}{'x = 1  # ' * 100}weather.call()",
        }.items()
    ),
    Case("an end in the arguments", "llama3_python", f'{TAG}weather.call(a="', broken_off("")),
    Case("no tools", "llama3_python", f"{TAG}{CALL}", said(f"{TAG}{CALL}"), NO_TOOLS),
]

MISTRAL = [
    Case(
        "a list of calls",
        "mistral",
        f'Let me.[TOOL_CALLS] [{CALL}, {CALL[:-1]}, "id": "D681PevKs"}}]',
        said("Let me.") + called(PRAGUE) + called(PRAGUE, 1),
    ),
    Case(
        "an id before the name",
        "mistral",
        f'[TOOL_CALLS][{{"id":"D681PevKs",{CALL[1:]}]',
        called(PRAGUE, named="D681PevKs"),
    ),
    Case(
        "reasoning",
        "mistral",
        f"[THINK]hm[/THINK]So. [THINK]ah\n[/THINK][TOOL_CALLS][{CALL}]",
        thought("hm") + said("So.") + thought("ah") + called(PRAGUE),
    ),
    Case(
        "reasoning opened by the prompt",
        "mistral",
        "hm[/THINK]So.",
        thought("hm") + said("So."),
        thinking("[/INST][THINK]"),
    ),
    *(
        Case(f"text: {why}", "mistral", text, said(text))
        for why, text in {
            "an unknown tool": '[TOOL_CALLS][{"name":"fly","arguments":{}}]',
            "no list": f"[TOOL_CALLS]{CALL}",
            "the other form": f"[TOOL_CALLS]weather[ARGS]{PRAGUE}",
            "an empty list": "[TOOL_CALLS][]",
            "an unfinished marker": "a [TOOL_CALLS",
        }.items()
    ),
    Case("an end between calls", "mistral", f"[TOOL_CALLS][{CALL}, ", called(PRAGUE)),
    Case("no tools", "mistral", f"[TOOL_CALLS][{CALL}]", said(f"[TOOL_CALLS][{CALL}]"), NO_TOOLS),
]

MISTRAL_ARGS = [
    Case(
        "calls",
        "mistral_args",
        f"Let me.[TOOL_CALLS]weather[ARGS]{PRAGUE}[TOOL_CALLS]brave_search[ARGS]{{}}",
        said("Let me.") + called(PRAGUE) + called("{}", 1, "brave_search"),
    ),
    Case(
        "an id",
        "mistral_args",
        f"[TOOL_CALLS]weather[CALL_ID]D681PevKs[ARGS]{TRICKY}",
        called(TRICKY, named="D681PevKs"),
    ),
    Case(
        "reasoning",
        "mistral_args",
        f"[THINK]hm[/THINK][TOOL_CALLS]weather[ARGS]{PRAGUE}",
        thought("hm") + called(PRAGUE),
    ),
    *(
        Case(f"text: {why}", "mistral_args", text, said(text))
        for why, text in {
            "an unknown tool": "[TOOL_CALLS]fly[ARGS]{}",
            "no arguments": "[TOOL_CALLS]weather",
            "the other form": f"[TOOL_CALLS][{CALL}]",
        }.items()
    ),
]


def v3(*calls):
    written = "\n".join(
        f"{ds.CALL_OPEN}function{ds.SEPARATOR}{name}\n```json\n{arguments}\n```{ds.CALL_CLOSE}"
        for name, arguments in calls
    )
    return f"{ds.OPEN}{written}{ds.CLOSE}"


def v31(*calls):
    written = (
        f"{ds.CALL_OPEN}{name}{ds.SEPARATOR}{arguments}{ds.CALL_CLOSE}" for name, arguments in calls
    )
    return f"{ds.OPEN}{''.join(written)}{ds.CLOSE}"


DEEPSEEK = [
    Case(
        "calls of V3",
        "deepseek_v3",
        f"<think>\nhm\n</think>\n\nLet me.{v3(('weather', PRAGUE), ('brave_search', '{}'))}",
        thought("hm") + said("Let me.") + called(PRAGUE) + called("{}", 1, "brave_search"),
    ),
    Case(
        "calls of V3.1",
        "deepseek_v31",
        f"Let me.{v31(('weather', TRICKY), ('weather', PRAGUE))}\n",
        said("Let me.") + called(TRICKY) + called(PRAGUE, 1),
    ),
    Case(
        "reasoning opened by the prompt",
        "deepseek_v31",
        f"hm</think>{v31(('weather', PRAGUE))}",
        thought("hm") + called(PRAGUE),
        thinking("<｜Assistant｜><think>"),  # noqa: RUF001 - DeepSeek's own marker
    ),
    *(
        Case(f"text: {why}", dialect, text, said(text))
        for why, dialect, text in [
            ("an unknown tool of V3", "deepseek_v3", v3(("fly", "{}"))),
            ("an unknown tool of V3.1", "deepseek_v31", v31(("fly", "{}"))),
            ("V3.1 is not V3", "deepseek_v3", v31(("weather", "{}"))),
            ("V3 is not V3.1", "deepseek_v31", v3(("weather", "{}"))),
            ("no call", "deepseek_v31", f"{ds.OPEN}{ds.CLOSE}"),
            ("a call alone", "deepseek_v31", f"{ds.CALL_OPEN}weather{ds.SEPARATOR}{{}}"),
        ]
    ),
    Case(
        "an end before the arguments",
        "deepseek_v31",
        f"{ds.OPEN}{ds.CALL_OPEN}weather{ds.SEPARATOR}",
        broken_off(""),
    ),
]

NEXT = "<|end|><|start|>assistant"
COMMENTARY = "<|channel|>commentary"
JSON = "<|constrain|>json<|message|>"
HARMONY = [
    Case(
        "analysis and answer",
        "harmony",
        f"<|channel|>analysis<|message|> hm {NEXT}<|channel|>final<|message|> So.\n<|return|>",
        thought(" hm ") + said(" So.\n"),
    ),
    Case(
        "a remark and a call",
        "harmony",
        f"<|channel|>analysis<|message|>hm{NEXT}{COMMENTARY}<|message|>Let me.{NEXT}"
        f"{COMMENTARY} to=functions.weather {JSON}{TRICKY}<|call|>",
        thought("hm") + said("Let me.") + called(TRICKY),
    ),
    *(
        Case(f"a recipient {where}", "harmony", text, called(PRAGUE))
        for where, text in {
            "in the role": f" to=functions.weather{COMMENTARY} json<|message|>{PRAGUE}<|call|>",
            "of a later message": f"<|start|>assistant to=functions.weather{COMMENTARY}{JSON}"
            f"{PRAGUE}<|call|>",
            "without white space": f"{COMMENTARY} to=functions.weather{JSON}{PRAGUE}<|call|>",
            "without a type": f"{COMMENTARY} to=functions.weather<|message|>{PRAGUE}<|end|>",
            "on another channel": f"<|channel|>analysis to=functions.weather {JSON}{PRAGUE}",
        }.items()
    ),
    Case(
        "two calls",
        "harmony",
        f"{COMMENTARY} to=functions.weather {JSON}{{}}<|call|>"
        f"<|start|>assistant{COMMENTARY} to=functions.brave_search {JSON}{{}}<|call|>",
        called("{}") + called("{}", 1, "brave_search"),
    ),
    Case(
        "an answer opened by the prompt",
        "harmony",
        f"So.{NEXT}<|channel|>final<|message|> Really.",
        said("So. Really."),
        thinking("<|start|>user<|message|>Q<|end|><|start|>assistant<|channel|>final<|message|>"),
    ),
    Case(
        "an analysis opened by the prompt",
        "harmony",
        f"hm{NEXT}<|channel|>final<|message|>So.",
        thought("hm") + said("So."),
        thinking("<|start|>assistant<|channel|>analysis<|message|>"),
    ),
    Case(
        "a turn that the prompt leaves to begin",
        "harmony",
        "<|channel|>final<|message|>So.",
        said("So."),
        thinking("<|start|>user<|message|>Q<|end|><|start|>assistant"),
    ),
    Case("an unfinished end", "harmony", "<|channel|>final<|message|>So.<|en", said("So.<|en")),
    *(
        Case(f"text: {why}", "harmony", text, said(text))
        for why, text in {
            "an unknown tool": f"{COMMENTARY} to=functions.fly {JSON}{{}}<|call|>",
            "no function": f"{COMMENTARY} to=browser.search {JSON}{{}}<|call|>",
            "an unknown channel": "<|channel|>other<|message|>So.<|end|>",
            "no head": " Just <b>text</b>, though.",
            "a head without an end": "<|channel|>final So.",
            "a long head": f"<|channel|>{'final ' * 100}<|message|>So.",
        }.items()
    ),
    Case(
        "calls are text without tools",
        "harmony",
        f"{COMMENTARY} to=functions.weather {JSON}{PRAGUE}<|call|>",
        said(f"{COMMENTARY} to=functions.weather {JSON}{PRAGUE}<|call|>"),
        NO_TOOLS,
    ),
]

CASES = [
    *THINK,
    *HERMES,
    *LLAMA3_JSON,
    *LLAMA3_PYTHON,
    *MISTRAL,
    *MISTRAL_ARGS,
    *DEEPSEEK,
    *HARMONY,
]

MALFORMED = [
    ("hermes", '<tool_call>{"name":"weather","arguments":{"a":]'),
    ("hermes", '<tool_call>{"name":"weather","arguments":"{}"'),
    ("hermes", '<tool_call>{"name":"weather"}'),
    ("hermes", '<tool_call>{"name":"weather","name":"weather"'),
    ("hermes", f"<tool_call>{CALL}}}"),
    ("hermes", f"<tool_call>{CALL}<tool_call>"),
    ("hermes", '<tool_call>{"name":"weather","arguments":{"a":"line\nbreak"}}'),
    ("llama3_json", f"{CALL}; and"),
    ("llama3_python", f"{TAG}weather.call(x)"),
    ("llama3_python", f"{TAG}weather.call(a=1, a=2)"),
    ("mistral", f'[TOOL_CALLS][{CALL}, {{"name": "fly"'),
    ("mistral_args", "[TOOL_CALLS]weather[ARGS]7"),
    ("deepseek_v3", f"{v3(('weather', '{}'))[: -len(ds.CLOSE)]}more"),
    ("deepseek_v31", f"{ds.OPEN}{ds.CALL_OPEN}weather{ds.SEPARATOR}[]"),
    ("harmony", f"{COMMENTARY} to=functions.weather {JSON}{PRAGUE}}}<|call|>"),
]
"""Outputs that break at some place after a call has named its tool."""

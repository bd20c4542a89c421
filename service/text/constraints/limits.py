"""How large and how slow a constraint may be."""

from __future__ import annotations

from dataclasses import dataclass

import llguidance


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one model's constraints.

    `source_bytes` and `choices` bound what a client writes, `compile_seconds` the wait for its
    compilation, of which at most `compilations` run at once, and `restart_seconds` the same wait
    where an engine waits. `cached_grammars` and `cached_bytes` (of sources) bound what is kept.
    The rest bounds the engine of the grammars: `lexer_states` its memory, some 2 kB each, and
    `initial_fuel`, `step_fuel`, `step_items` and `row_items` its work. That work may still take
    seconds, so that an output is given up once its steps have together taken `excess_seconds` of
    processor time beyond `step_seconds` each.
    """

    source_bytes: int = 128 * 1024
    choices: int = 10_000
    compile_seconds: float = 2.0
    restart_seconds: float = 0.25
    compilations: int = 2
    cached_grammars: int = 64
    cached_bytes: int = 1024 * 1024
    lexer_states: int = 20_000
    grammar_size: int = 200_000
    initial_fuel: int = 1_000_000
    step_fuel: int = 200_000
    step_items: int = 20_000
    row_items: int = 4_000
    step_seconds: float = 0.002
    excess_seconds: float = 0.1

    def of_parser(self) -> llguidance.LLParserLimits:
        """Return those that the engine of the grammars keeps by itself."""
        return llguidance.LLParserLimits(
            initial_lexer_fuel=self.initial_fuel,
            step_lexer_fuel=self.step_fuel,
            step_max_items=self.step_items,
            max_items_in_row=self.row_items,
            max_lexer_states=self.lexer_states,
            max_grammar_size=self.grammar_size,
            verbose_errors=False,
        )

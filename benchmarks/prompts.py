"""The prompts that measurements and exactness tests share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One user turn; `category` is Spec-Bench's own, or `copying`."""

    name: str
    category: str
    text: str


def spec_bench(per_category: int | None = None) -> tuple[Prompt, ...]:
    """Return the Spec-Bench sample, all of it or the first prompts of each of its 13 categories."""
    taken: dict[str, list[Prompt]] = {}
    for row in _rows("spec_bench_sample.jsonl"):
        category = row["category"]
        prompts = taken.setdefault(category, [])
        if per_category is None or len(prompts) < per_category:
            prompts.append(Prompt(f"{category}-{row['question_id']}", category, row["prompt"]))
    return tuple(prompt for prompts in taken.values() for prompt in prompts)


def copying(count: int | None = None) -> tuple[Prompt, ...]:
    """Return prompts whose answer is a given text with a small change."""
    rows = _rows("copying.jsonl")[:count]
    return tuple(Prompt(row["name"], "copying", row["prompt"]) for row in rows)


def _rows(name: str) -> list[dict[str, str]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]

from collections import Counter

from benchmarks.prompts import copying, spec_bench


def test_sample_has_eight_prompts_of_each_category() -> None:
    counts = Counter(prompt.category for prompt in spec_bench())

    assert (13, {8}) == (len(counts), set(counts.values()))


def test_sample_is_cut_to_the_first_prompts_of_each_category() -> None:
    whole = [prompt for prompt in spec_bench() if prompt.category == "rag"]

    assert whole[:5] == [prompt for prompt in spec_bench(5) if prompt.category == "rag"]
    assert 65 == len(spec_bench(5))


def test_prompts_are_named_apart() -> None:
    names = [prompt.name for prompt in (*spec_bench(), *copying())]

    assert len(names) == len(set(names))

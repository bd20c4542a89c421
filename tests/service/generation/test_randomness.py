from service.generation.randomness import fresh_seed, randomness_from_seed


def test_target_stream_is_sequential_and_draft_is_addressed_by_position():
    randomness = randomness_from_seed(7, 0.7)
    first, after = randomness.target.draw()
    second, _ = after.draw()
    assert first != second
    assert randomness.target.draw()[0] == first, "a value draws the same again"
    assert randomness.draft.at(4) == randomness_from_seed(7, 1.0).draft.at(4)
    assert randomness.draft.at(4) != randomness.draft.at(5)
    assert randomness.draft.at(0) != first


def test_zero_temperature_has_no_streams():
    randomness = randomness_from_seed(7, 0.0)
    assert (None, None) == (randomness.target, randomness.draft)


def test_zero_is_a_real_seed_and_seeds_differ():
    zero, one = randomness_from_seed(0, 1.0), randomness_from_seed(1, 1.0)
    assert zero.target.draw()[0] != one.target.draw()[0]


def test_draws_are_uniform_in_the_half_open_unit_interval():
    """Chi-square over 20 bins of 4000 draws of one fixed seed; the bound is p = 1e-4."""
    stream, counts = randomness_from_seed(11, 1.0).target, [0] * 20
    for _ in range(4000):
        value, stream = stream.draw()
        assert 0.0 <= value < 1.0
        counts[int(value * 20)] += 1
    assert sum((count - 200) ** 2 / 200 for count in counts) < 50.8


def test_fresh_seeds_fill_64_bits():
    seeds = {fresh_seed() for _ in range(8)}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**64 for seed in seeds)

"""Coverage and size with the true effect on the threshold, by exact enumeration; and the silent errors that this kit does not have.

Each calibration test prints its table. The promise: an interval misses, and a test rejects, at most .03 more often than it says.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from evalkit import (
    CoverageError,
    EvalkitError,
    InputError,
    Instances,
    MixError,
    RankKeyError,
    RuleError,
    Tally,
    at_least,
    cell_mean,
    fail_closed,
    pass_at,
    rank,
    rank_key,
    read_campaign,
    standardise,
)
from evalkit.bounds import reduction_bounds
from evalkit.campaign import outcome_code
from evalkit.sources.table import campaign as campaign_from_csv
from evalkit.uncertainty import (
    Interval,
    Unavailable,
    clopper_pearson,
    clustered_wilson,
    cr2_difference,
    mcnemar,
    mover,
    mover_difference,
    paired,
    selection_stability,
    sign_flip,
    tango,
    wilson,
)

NOMINAL, SLACK = 0.05, 0.03
SIZES = (6, 20, 76)


def show(title: str, rows: list[tuple[object, ...]]) -> None:
    print(title)
    for row in rows:
        print("  " + "  ".join(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row))


@cache
def tango_ends(b: int, c: int, n: int) -> tuple[float, float]:
    interval = tango(b, c, n)
    return interval.low, interval.high


@pytest.mark.parametrize("n", SIZES)
def test_one_rate_is_covered_when_the_truth_is_on_the_threshold(n: int) -> None:
    rows = []
    ends = {method: [method(x, n) for x in range(n + 1)] for method in (wilson, clopper_pearson)}
    for p in (0.5, 0.7, 0.8, 0.9, 0.95):
        chance = stats.binom.pmf(range(n + 1), n, p).tolist()
        missed = {
            method: sum(w for w, interval in zip(chance, intervals, strict=True) if not interval.low <= p <= interval.high)
            for method, intervals in ends.items()
        }
        rows.append((n, p, missed[wilson], missed[clopper_pearson]))
        assert missed[wilson] <= NOMINAL + SLACK
        assert missed[clopper_pearson] <= NOMINAL  # never more than it says
    show("n, true pass rate, missed by Wilson, missed by Clopper-Pearson (nominal .05)", rows)


def pairs(n: int, p10: float, p01: float) -> list[tuple[int, int, float]]:
    return [
        (b, c, weight)
        for b in range(n + 1)
        for c in range(n + 1 - b)
        if (weight := math.comb(n, b) * math.comb(n - b, c) * p10**b * p01**c * (1 - p10 - p01) ** (n - b - c)) > 1e-9
    ]


@pytest.mark.parametrize("n", SIZES)
def test_paired_tests_reject_no_difference_as_often_as_they_say(n: int) -> None:
    rows = []
    for p in (0.05, 0.2, 0.45):
        tables = pairs(n, p, p)
        exact = sum(w for b, c, w in tables if mcnemar(b, c).value <= Fraction(1, 20))
        mid = sum(w for b, c, w in tables if mcnemar(b, c, mid=True).value <= Fraction(1, 20))
        rows.append((n, p, exact, mid))
        assert exact <= NOMINAL  # guaranteed
        assert exact <= mid <= NOMINAL + SLACK
    show("n, chance of each kind of disagreement, size of McNemar exact, of mid-p (nominal .05)", rows)


@pytest.mark.parametrize("n", SIZES)
def test_tango_covers_a_difference_that_lies_on_the_margin(n: int) -> None:
    rows = []
    for p10, p01 in ((0.2, 0.2), (0.3, 0.1), (0.04, 0.14)):
        d, tables = p10 - p01, pairs(n, p10, p01)
        above = sum(w for b, c, w in tables if tango_ends(b, c, n)[0] > d + 1e-9)  # a false claim to be better than the margin
        below = sum(w for b, c, w in tables if tango_ends(b, c, n)[1] < d - 1e-9)
        rows.append((n, round(d, 2), above, below, above + below))
        assert above <= NOMINAL / 2 + SLACK
        assert below <= NOMINAL / 2 + SLACK
        assert above + below <= NOMINAL + SLACK
    show("n, true difference, missed above, missed below, both (nominal .05)", rows)


@pytest.mark.parametrize("n", SIZES)
def test_sign_flip_of_partial_credit_rejects_no_difference_as_often_as_it_says(n: int) -> None:
    # Differences -2..2 in passes, symmetric: their counts per magnitude decide p, so the enumeration is over those.
    chance = {1: 0.3, 2: 0.2, 0: 0.5}
    size = 0.0
    if n <= 20:
        for ones in range(n + 1):
            for twos in range(n + 1 - ones):
                shape = (
                    math.comb(n, ones) * math.comb(n - ones, twos) * chance[1] ** ones * chance[2] ** twos * chance[0] ** (n - ones - twos)
                )
                if shape < 1e-4:
                    size += shape  # as if it always rejected
                    continue
                for up1, up2 in itertools.product(range(ones + 1), range(twos + 1)):
                    if rejected(ones, up1, twos, up2):
                        size += shape * math.comb(ones, up1) * math.comb(twos, up2) / 2 ** (ones + twos)
        show("n, size of sign-flip (nominal .05), enumerated", [(n, size)])
    else:
        rng = np.random.default_rng(8)
        d = rng.choice([-2, -1, 0, 1, 2], (600, n), p=[0.1, 0.15, 0.5, 0.15, 0.1])
        hits = [rejected(*(int(np.count_nonzero(abs(row) == 1)), int(np.count_nonzero(row == 1))),
                         *(int(np.count_nonzero(abs(row) == 2)), int(np.count_nonzero(row == 2)))) for row in d]  # fmt: skip
        size = float(np.mean(hits))
        show("n, size of sign-flip (nominal .05), 600 draws", [(n, size)])
    assert size <= NOMINAL + (0 if n <= 20 else SLACK)


@cache
def rejected(ones: int, up1: int, twos: int, up2: int) -> bool:
    d = [1] * up1 + [-1] * (ones - up1) + [2] * up2 + [-2] * (twos - up2)
    return bool(d) and sign_flip(d).value <= Fraction(1, 20)


def beta_binomial(size: int, p: float, icc: float) -> list[float]:
    scale = 1 / icc - 1
    return [float(stats.betabinom.pmf(x, size, p * scale, (1 - p) * scale)) for x in range(size + 1)]


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4, 4), (2, 3, 4, 5, 6), (1, 2, 3, 4, 10)])
def test_a_clustered_rate_is_covered_with_five_clusters(sizes: tuple[int, ...]) -> None:
    rows = []
    intervals = {passed: clustered_wilson(passed, sizes) for passed in itertools.product(*(range(s + 1) for s in sizes))}
    for p, icc in ((0.5, 0.3), (0.8, 0.1), (0.8, 0.3)):
        chances = [beta_binomial(s, p, icc) for s in sizes]
        missed = iid = 0.0
        for passed, interval in intervals.items():
            weight = math.prod(c[x] for c, x in zip(chances, passed, strict=True))
            assert isinstance(interval, Interval)
            missed += weight * (not interval.low <= p <= interval.high)
            iid += weight * (not (naive := whole(sum(passed), sum(sizes))).low <= p <= naive.high)
        rows.append((str(sizes), p, icc, missed, iid))
        assert missed <= NOMINAL + SLACK
        if icc == 0.3:
            assert iid > missed + 0.05  # requests taken as independent would miss far more often
    show("cluster sizes, true pass rate, correlation, missed by the clustered interval, missed as if independent (nominal .05)", rows)


whole = cache(wilson)


@pytest.mark.parametrize("effect", [0.0, 0.2])
def test_a_clustered_paired_difference_is_covered_with_five_clusters(effect: float) -> None:
    # A cluster leans to the candidate or to the incumbent; its three instances then differ independently.
    lean = {(0.5, 0.1): 0.5, (0.1 + effect, 0.5 - effect): 0.5}
    truth = sum(w * (p10 - p01) for (p10, p01), w in lean.items())
    of_sum: Counter[int] = Counter()
    for (p10, p01), w in lean.items():
        for d in itertools.product((1, -1, 0), repeat=3):
            of_sum[sum(d)] += w * math.prod({1: p10, -1: p01, 0: 1 - p10 - p01}[x] for x in d)
    names = [name for name in "abcde" for _ in range(3)]
    missed = unavailable = flips = 0.0
    for sums in itertools.combinations_with_replacement(sorted(of_sum), 5):
        ways = math.factorial(5) // math.prod(map(math.factorial, Counter(sums).values()))
        weight = ways * math.prod(of_sum[s] for s in sums)
        d = [x for s in sums for x in ([1 if s > 0 else -1] * abs(s) + [0] * (3 - abs(s)))]
        interval = cr2_difference(d, names)
        if isinstance(interval, Unavailable):
            unavailable += weight
        else:
            missed += weight * (not interval.low <= truth <= interval.high)
        flips += weight * (sign_flip(sums).value <= Fraction(1, 20))
    show(
        "true difference, missed by CR2/t, unavailable, sign-flip of cluster sums rejects 0 (nominal .05)",
        [(truth, missed, unavailable, flips)],
    )
    assert missed <= NOMINAL + SLACK
    assert unavailable < 0.01
    assert flips == 0  # five clusters cannot reach .05, and the kit does not pretend that they do


def test_mover_covers_a_difference_on_the_threshold() -> None:
    weights, rows = {"x": Fraction(1, 2), "y": Fraction(1, 2)}, []
    for p in (0.5, 0.95):
        chance = [float(stats.binom.pmf(x, 10, p)) for x in range(11)]
        missed = 0.0
        for x, y in itertools.product(range(11), repeat=2):
            interval = mover(Tally.of("t", {"x": (x, 10), "y": (y, 10)}), weights)
            missed += chance[x] * chance[y] * (not interval.low <= p <= interval.high)
        rows.append((p, missed))
        assert missed <= NOMINAL + SLACK
    show("true standardised rate of two groups of ten, missed by MOVER (nominal .05)", rows)


# Silent errors of other tools


def instances(passed: list[int], planned: int) -> Instances:
    x = np.array(passed, np.int64)
    return Instances("A", tuple(f"i{k}" for k in range(len(passed))), x, planned - x, np.full(len(passed), planned, np.int64))


def test_no_p_value_of_zero_where_no_pair_differs() -> None:
    p, interval = mcnemar(0, 0), tango(0, 0, 10)
    assert p.value == 1
    assert "cannot decide" in p.note
    assert (interval.low, interval.high) == pytest.approx((-0.2775, 0.2775), abs=1e-4)


@pytest.mark.parametrize("counts", [(0, 0), (11, 10), (5.5, 10)])
def test_no_interval_from_counts_that_cannot_be(counts: tuple[int, int]) -> None:
    for method in (wilson, clopper_pearson):
        with pytest.raises(InputError):
            method(*counts)


def test_no_interval_without_width_at_ten_of_ten() -> None:
    assert wilson(10, 10).low == pytest.approx(0.7225, abs=1e-4)
    assert clopper_pearson(10, 10).low == pytest.approx(0.6915, abs=1e-4)


def test_no_limit_above_one_at_nine_of_ten() -> None:
    assert wilson(9, 10).high == pytest.approx(0.9821, abs=1e-4)
    both = mover(Tally.of("t", {"x": (9, 10), "y": (10, 10)}), {"x": Fraction(1, 2), "y": Fraction(1, 2)})
    assert both.high <= 1


def test_no_standard_error_of_zero_from_one_cluster() -> None:
    assert isinstance(clustered_wilson([2], [3]), Unavailable)
    assert isinstance(cr2_difference([1, 0, 1], ["a", "a", "a"]), Unavailable)


def test_no_mean_of_nothing() -> None:
    for reduction in (cell_mean, fail_closed):
        with pytest.raises(CoverageError):
            reduction(instances([], 2))
        with pytest.raises(CoverageError):
            reduction(instances([0], 0))  # all([]) is True: an instance that never ran has not passed


@pytest.mark.parametrize("word", ["maybe", "nan", "", "0.999", "None", "2"])
def test_no_word_that_is_no_verdict_becomes_a_fail(word: str) -> None:
    with pytest.raises(InputError):
        outcome_code(word)


def test_no_false_string_counts_as_a_pass() -> None:
    rows = "candidate,instance,repetition,outcome\n" + "".join(f"A,i{k},0,{word}\n" for k, word in enumerate(("True", "False", "False")))
    assert cell_mean(campaign_from_csv(rows.encode()).of("A")) == Fraction(1, 3)


def test_no_nan_in_a_rank_key() -> None:
    with pytest.raises(RankKeyError):
        rank({"A": (math.nan,), "B": (1,)})  # type: ignore[dict-item]


@pytest.mark.parametrize("reduction", [at_least(5), pass_at(5)])
def test_no_k_beyond_the_repetitions(reduction: object) -> None:
    with pytest.raises(RuleError):
        reduction(instances([3, 0], 3))  # type: ignore[operator]


def test_no_missing_cell_is_dropped() -> None:
    x = np.array([6], np.int64)
    view = Instances("A", ("i",), x, np.array([2], np.int64), np.array([10], np.int64))
    with pytest.raises(CoverageError):
        cell_mean(view)
    bounds = reduction_bounds(cell_mean, view)
    assert not isinstance(bounds, Unavailable)
    assert (bounds.low, bounds.high) == (Fraction(3, 5), Fraction(4, 5))


def test_no_weights_are_rescaled_over_the_groups_that_are_there() -> None:
    with pytest.raises(MixError, match="missing"):
        standardise(Tally.of("t", {"routine": (8, 10)}), {"routine": Fraction(1, 10), "complex": Fraction(9, 10)})


def test_no_float_tie_is_broken() -> None:
    assert sign_flip([Fraction("0.1")] * 3 + [Fraction("-0.1")]).value == Fraction(5, 8)
    places = rank({"A": (1, Fraction("0.1") + Fraction("0.2")), "B": (1, Fraction("0.3"))})
    assert {p.place for p in places} == {1}


def test_no_drawn_p_value_is_zero() -> None:
    p = sign_flip([Fraction(1, k) for k in range(2, 32)], resamples=999)
    assert p.value == Fraction(1, 1000)


def test_no_certainty_from_a_constant_difference() -> None:
    assert sign_flip([1] * 5).value == Fraction(1, 16)  # a t test says p = 0
    assert isinstance(cr2_difference([1] * 6, list("aabbcc")), Unavailable)


def test_no_tie_is_broken_by_a_name_or_by_order() -> None:
    campaign = read_campaign()
    ways = [selection_stability(campaign, [cell_mean], names) for names in (["CLAUDE", "MERGE"], ["MERGE", "CLAUDE"])]
    assert not any(isinstance(s, Unavailable) for s in ways)
    assert ways[0].tie == ways[1].tie == Fraction(8989, 46656)  # type: ignore[union-attr]
    assert dict(ways[0].wins) == dict(ways[1].wins)  # type: ignore[union-attr]


def test_no_repetition_is_taken_for_another_instance() -> None:
    campaign = read_campaign()
    p = paired(campaign.of("CLAUDE"), campaign.of("MERGE"), at_least=2)
    assert p.instances == 6
    assert p.interval == tango(1, 0, 6)


def test_no_overlap_of_two_intervals_is_read_as_no_difference() -> None:
    assert wilson(60, 100).high > wilson(74, 100).low
    interval = mover_difference(Tally.of("A", {"all": (60, 100)}), Tally.of("B", {"all": (74, 100)}), {"all": Fraction(1)})
    assert (interval.low, interval.high) == pytest.approx((0.0097, 0.2640), abs=1e-4)


def test_no_candidates_of_different_instances_are_compared() -> None:
    rows = "candidate,instance,repetition,outcome\nA,i1,0,1\nA,i2,0,1\nA,i3,0,0\nB,i1,0,1\nB,i2,0,1\n"
    campaign = campaign_from_csv(rows.encode())
    with pytest.raises(EvalkitError, match="2 of 3 cells"):
        rank_key(campaign.of("B"), [cell_mean])
    with pytest.raises(CoverageError):
        paired(campaign.of("B"), campaign.of("A"), at_least=1)

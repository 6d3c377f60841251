"""Intervals, paired tests, stability and power: each number by two routes, each degenerate input by its own answer."""

import itertools
import json
import math
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from evalkit import (
    Campaign,
    CoverageError,
    InputError,
    Instances,
    MixError,
    ReleaseRule,
    RuleError,
    Tally,
    cell_mean,
    decide,
    fail_closed,
    lowest,
    mean_score,
    pass_hat,
    passing_cells,
    read_campaign,
    read_reference,
    read_rule,
    read_tallies,
    standardise,
    unit,
)
from evalkit.campaign import CODE, FAIL, PASS, Column
from evalkit.decide import PROMOTE
from evalkit.uncertainty import (
    FalsePromotion,
    Interval,
    Stability,
    Unavailable,
    clopper_pearson,
    clustered_wilson,
    cr2_difference,
    false_promotion,
    holm,
    instances_needed,
    mcnemar,
    mcnemar_power,
    mover,
    mover_difference,
    paired,
    pooled_chances,
    selection_stability,
    sign_flip,
    tango,
    wilson,
)

ORACLES = Path(__file__).resolve().parents[2] / "shared" / "oracles.json"
BY_ID = {o["id"]: o for o in json.loads(ORACLES.read_text())["oracles"]} if ORACLES.exists() else {}


def oracles(*prefixes: str) -> pytest.MarkDecorator:
    found = [o for name, o in BY_ID.items() if name.startswith(prefixes)]
    ids = [o["id"] for o in found]
    return pytest.mark.parametrize(
        "o", found or [pytest.param(None, marks=pytest.mark.skip("../shared/oracles.json is absent"))], ids=ids or None
    )


def ends(interval: Interval | Unavailable) -> tuple[float, float]:
    assert isinstance(interval, Interval), interval
    return interval.low, interval.high


def near(interval: Interval | Unavailable, expected: object, tolerance: float) -> bool:
    return ends(interval) == pytest.approx(expected, abs=tolerance)


def campaign_of(passed: dict[str, list[int]], repetitions: int = 2, clusters: tuple[str, ...] | None = None) -> Campaign:
    """Passes per instance for each candidate."""
    names = tuple(sorted(passed))
    cube = np.array([[[PASS if r < n else FAIL for n in passed[c]] for c in names] for r in range(repetitions)], np.uint8)
    ids = tuple(f"i{n}" for n in range(cube.shape[2]))
    return Campaign(names, ids, tuple(map(str, range(repetitions))), cube, None, clusters)


# One proportion


@oracles("ci-")
def test_one_proportion_matches_three_programs(o: dict) -> None:
    x, n = o["input"]["x"], o["input"]["n"]
    if not isinstance(o["expected"], dict):
        for method in (wilson, clopper_pearson):
            with pytest.raises(InputError, match="0 of 0"):
                method(x, n)
        return
    assert near(wilson(x, n), o["expected"]["wilson"], o["tolerance"])
    assert near(clopper_pearson(x, n), o["expected"]["clopper_pearson"], o["tolerance"])


def test_wilson_equals_scipy_at_every_count_and_several_confidences() -> None:
    for n, confidence in itertools.product((1, 2, 6, 20), (0.8, 0.95, 0.99)):
        for x in range(n + 1):
            ci = stats.binomtest(x, n).proportion_ci(confidence, "wilson")
            assert near(wilson(x, n, confidence=confidence), (ci.low, ci.high), 1e-12)


def test_zero_of_n_and_n_of_n_have_a_width_and_stay_inside() -> None:
    assert ends(wilson(0, 10))[0] == 0.0
    assert ends(wilson(10, 10))[1] == 1.0
    assert near(wilson(10, 10), (0.7224672001371, 1), 1e-10)
    assert near(wilson(9, 10), (0.5958499732048, 0.9821237869049), 1e-10)
    assert near(clopper_pearson(0, 20), (0, 0.168433470983085), 1e-10)


@pytest.mark.parametrize("bad", [(11, 10), (-1, 10), (5.5, 10), (True, 1), (0, 0), (np.int64(3), 10)])
def test_counts_that_are_no_counts_are_refused(bad: tuple[int, int]) -> None:
    for method in (wilson, clopper_pearson):
        with pytest.raises(InputError):
            method(*bad)


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5, math.nan])
def test_a_confidence_that_is_no_share_is_refused(confidence: float) -> None:
    for method in (wilson, clopper_pearson):
        with pytest.raises(InputError, match="confidence"):
            method(3, 10, confidence=confidence)


def test_intervals_say_what_they_assume() -> None:
    assert str(wilson(9, 10)) == "0.596 to 0.982 (Wilson, 95%; assumes independent requests)"
    for interval in (clopper_pearson(9, 10), mover(read_tallies()["candidate"], read_reference())):
        assert interval.note == "assumes independent requests"


# Clusters


@oracles("cl-05")
def test_clustered_rate_matches_survey_software(o: dict) -> None:
    passed, sizes = Counter(), Counter()
    for y, cluster in zip(o["input"]["y"], o["input"]["cluster"], strict=True):
        passed[cluster] += int(y)
        sizes[cluster] += 1
    interval = clustered_wilson([passed[c] for c in sizes], list(sizes.values()))
    assert near(interval, o["expected"]["wilson_n_eff"], o["tolerance"])
    assert isinstance(interval, Interval)
    assert interval.method == "Wilson on 12.1 effective requests, 95%"


def test_clustered_rate_on_a_hard_coded_case_and_its_caution() -> None:
    interval = clustered_wilson([2, 1, 1, 1, 1], [3, 2, 4, 1, 2])
    assert near(interval, (0.25429161099551206, 0.745708389004488), 1e-7)
    assert isinstance(interval, Interval)
    assert interval.note == "5 clusters, few"


@oracles("cl-03")
def test_one_cluster_is_unavailable(o: dict) -> None:
    assert "unavailable" in o["expected"]
    assert str(clustered_wilson([2], [3])) == "unavailable: one cluster says nothing about how clusters differ"


def test_clusters_without_spread_count_as_one_observation_each() -> None:
    for passed in ([10, 10, 10], [0, 0, 0], [5, 5, 5]):
        interval = clustered_wilson(passed, [10, 10, 10])
        assert near(
            interval, ends(wilson(passed[0] * 3 // 10, 3)) if passed[0] != 5 else ends(clustered_wilson([1, 1, 1], [2, 2, 2])), 1e-12
        )
        assert isinstance(interval, Interval)
        assert interval.high - interval.low > 0.5
        assert "no spread" in interval.note
    with pytest.raises(InputError):
        clustered_wilson([], [])
    with pytest.raises(InputError):
        clustered_wilson([1, 0], [1])
    with pytest.raises(InputError):
        clustered_wilson([1, 0], [1, 0])


def test_clusters_that_agree_inside_widen_the_interval() -> None:
    apart, alike = clustered_wilson([10, 0] * 5, [10] * 10), wilson(50, 100)
    assert ends(apart)[1] - ends(apart)[0] > 2 * (alike.high - alike.low)


@oracles("cl-02")
def test_cr2_of_a_paired_difference_matches_clubsandwich(o: dict) -> None:
    expected = o["expected"]
    interval = cr2_difference([int(d) for d in o["input"]["d"]], [str(c) for c in o["input"]["cluster"]], most=10)
    half = stats.t.ppf(0.975, expected["df"]) * expected["CR2"]
    assert near(interval, (expected["mean"] - half, expected["mean"] + half), 1e-9)


@oracles("cl-01")
def test_cr2_and_its_degrees_of_freedom_match_clubsandwich_with_unequal_clusters(o: dict) -> None:
    expected = o["expected"]
    interval = cr2_difference([int(y) for y in o["input"]["y"]], [str(c) for c in o["input"]["cluster"]])
    half = stats.t.ppf(0.975, expected["CR2_satterthwaite_df"]) * expected["CR2"]
    assert near(interval, (expected["mean"] - half, expected["mean"] + half), 1e-9)


def test_cr2_with_singleton_clusters_is_the_t_interval() -> None:
    d = [1, 0, -1, 1, 1, 0]
    ci = stats.ttest_1samp(d, 0).confidence_interval()
    assert near(cr2_difference(d, list("abcdef"), most=2), (ci.low, ci.high), 1e-9)


def test_cr2_is_unavailable_with_one_cluster_or_without_spread_and_stays_in_range() -> None:
    assert isinstance(cr2_difference([1, 0, 1], ["a"] * 3), Unavailable)
    assert isinstance(cr2_difference([0, 0, 0, 0], list("aabb")), Unavailable)
    assert isinstance(cr2_difference([1, 1, 1, 1], list("aabb")), Unavailable)
    assert ends(cr2_difference([1, 1, 1, 0], list("aabb"))) == (-1.0, 1.0)
    with pytest.raises(InputError):
        cr2_difference([2, 0], ["a", "b"])
    with pytest.raises(InputError):
        cr2_difference([1, 0], ["a"])
    assert ends(cr2_difference([2, 0, 1], list("abc"), most=2))[1] == 2.0


# Standardised rates


@oracles("sci-base", "sci-cand")
def test_standardised_interval_matches(o: dict) -> None:
    tally = Tally.of("t", {name: (x, n) for name, x, n in zip("ab", o["input"]["x"], o["input"]["n"], strict=True)})
    weights = {name: Fraction(str(w)) for name, w in zip("ab", o["input"]["w"], strict=True)}
    assert near(mover(tally, weights), o["expected"]["mover_wilson"], o["tolerance"])


@oracles("sci-diff")
def test_difference_of_standardised_rates_matches(o: dict) -> None:
    tallies = read_tallies()
    assert near(mover_difference(tallies["baseline"], tallies["candidate"], read_reference()), o["expected"]["mover"], o["tolerance"])


def test_the_published_fall_of_ten_points_excludes_zero_only_just() -> None:
    tallies = read_tallies()
    assert near(mover(tallies["baseline"], read_reference()), (0.4206771137, 0.4794712991), 1e-9)
    assert near(mover(tallies["candidate"], read_reference()), (0.2770025879, 0.4362994291), 1e-9)
    interval = mover_difference(tallies["baseline"], tallies["candidate"], read_reference())
    assert near(interval, (-0.1787221674, -0.0088549336), 1e-9)
    assert interval.note == "assumes independent requests in two independent periods"


@oracles("newc-")
def test_a_single_group_is_newcombes_difference(o: dict) -> None:
    (x1, n1), (x2, n2) = ((int(part) for part in text.split("/")) for text in o["id"].removeprefix("newc-").split("-"))
    interval = mover_difference(Tally.of("2", {"all": (x2, n2)}), Tally.of("1", {"all": (x1, n1)}), {"all": Fraction(1)})
    expected = o["expected"]
    assert near(interval, expected if isinstance(expected, list) else next(v for v in expected.values() if isinstance(v, list)), 1e-8)


@oracles("hyg-06")
def test_overlapping_intervals_are_not_a_test(o: dict) -> None:
    expected = o["expected"]
    assert near(wilson(60, 100), expected["wilson_A"], 1e-8)
    assert near(wilson(74, 100), expected["wilson_B"], 1e-8)
    interval = mover_difference(Tally.of("A", {"all": (60, 100)}), Tally.of("B", {"all": (74, 100)}), {"all": Fraction(1)})
    assert near(interval, expected["newcombe_difference_B_minus_A"], 1e-8)


def test_mover_has_a_width_at_all_passed_stays_inside_and_refuses_what_standardise_refuses() -> None:
    weights = {"x": Fraction(1, 2), "y": Fraction(1, 2)}
    interval = mover(Tally.of("t", {"x": (10, 10), "y": (10, 10)}), weights)
    assert interval.high == 1.0
    assert interval.low < 0.85
    assert ends(mover(Tally.of("t", {"x": (0, 10), "y": (0, 3)}), weights))[0] == 0.0
    with pytest.raises(MixError):
        mover(Tally.of("t", {"x": (1, 2)}), weights)
    with pytest.raises(MixError):
        mover(Tally.of("t", {"x": (1, 2), "y": (0, 0)}), weights)
    with pytest.raises(CoverageError):
        mover(Tally.of("t", {"x": (1, 2, 3), "y": (1, 2)}), weights)


# Paired pass and fail


@oracles("mcn-")
def test_mcnemar_matches_as_a_fraction(o: dict) -> None:
    b, c = o["input"]["b"], o["input"]["c"]
    if o["expected"]["exact_fraction"]:
        assert mcnemar(b, c).value == Fraction(o["expected"]["exact_fraction"])
    assert float(mcnemar(b, c).value) == pytest.approx(o["expected"]["exact"], rel=1e-9)
    assert float(mcnemar(b, c, mid=True).value) == pytest.approx(o["expected"]["mid_p"], rel=1e-9)


def test_mcnemar_equals_the_binomial_test_for_every_small_pair() -> None:
    for b, c in itertools.product(range(9), repeat=2):
        if b + c:
            assert float(mcnemar(b, c).value) == pytest.approx(stats.binomtest(b, b + c).pvalue, abs=1e-12)
        assert mcnemar(b, c) == replace(mcnemar(c, b), note=mcnemar(b, c).note)
        assert mcnemar(b, c, mid=True).value <= mcnemar(b, c).value


def test_a_sweep_of_five_is_not_enough_and_a_sweep_of_six_is() -> None:
    assert mcnemar(5, 0).value == Fraction(1, 16)
    assert mcnemar(6, 0).value == Fraction(1, 32)
    assert mcnemar(0, 0).value == 1
    assert "cannot decide" in mcnemar(0, 0).note
    assert mcnemar(0, 0, mid=True).value == 1
    assert 0 < mcnemar(0, 3000).value < Fraction(1, 10**300)  # where a float would say 0
    for bad in ((-1, 2), (1.0, 2), (True, 2)):
        with pytest.raises(InputError):
            mcnemar(*bad)  # type: ignore[arg-type]


@oracles("tango-")
def test_tango_matches_three_programs(o: dict) -> None:
    i = o["input"]
    n = i["n11"] + i["n12"] + i["n21"] + i["n22"]
    assert near(tango(i["n12"], i["n21"], n, confidence=i["confidence"]), o["expected"]["ci"], o["tolerance"])


def test_tangos_published_examples_hold_without_the_file() -> None:
    assert near(tango(9, 3, 32), (-0.027, 0.390), 5e-4)
    assert near(tango(16, 8, 86), (-0.020, 0.207), 5e-4)
    assert near(tango(0, 1, 44, confidence=0.9), (-0.096, 0.037), 5e-4)
    assert near(tango(5, 0, 10), (0.0837008002, 0.7634069095), 1e-8)
    assert float(mcnemar(86, 150).value) == pytest.approx(3.715936139571442e-05, rel=1e-9)


def test_tango_without_a_difference_is_z_squared_over_n_plus_z_squared() -> None:
    z2 = stats.norm.ppf(0.975) ** 2
    for n in (1, 6, 10, 76):
        assert near(tango(0, 0, n), (-z2 / (n + z2), z2 / (n + z2)), 1e-8)
    assert near(tango(0, 0, 1), (-0.79, 0.79), 5e-3)


def test_tango_is_symmetric_inside_minus_one_and_one_and_has_a_width_everywhere() -> None:
    for n in (1, 2, 6, 20):
        for b in range(n + 1):
            for c in range(n + 1 - b):
                low, high = ends(tango(b, c, n))
                assert -1 <= low < high <= 1
                assert high - low > 0.1
                assert low <= (b - c) / n + 1e-9
                assert high >= (b - c) / n - 1e-9
                assert ends(tango(c, b, n)) == pytest.approx((-high, -low), abs=1e-8)
    with pytest.raises(InputError):
        tango(3, 3, 5)
    with pytest.raises(InputError):
        tango(0, 0, 0)


def test_tangos_limits_are_where_the_profile_likelihood_score_reaches_the_critical_value() -> None:
    from scipy.optimize import minimize_scalar

    b, c, n = 9, 3, 32
    for d in ends(tango(b, c, n)):
        # Second route: the constrained estimate of p01 by maximising the trinomial likelihood, not by its closed form.
        def loss(q: float, d: float = d) -> float:
            return -(b * math.log(q + d) + c * math.log(q) + (n - b - c) * math.log(1 - 2 * q - d))

        q = minimize_scalar(loss, bounds=(max(1e-9, 1e-9 - d), (1 - d) / 2 - 1e-9), method="bounded", options={"xatol": 1e-10}).x
        score = (b - c - n * d) / math.sqrt(n * (2 * q + d - d * d))
        assert abs(score) == pytest.approx(stats.norm.ppf(0.975), abs=1e-5)


# Sign flips


@oracles("sf-five6", "sf-no3", "sf-one1", "sf-floattie")
def test_sign_flip_matches_as_a_fraction(o: dict) -> None:
    assert sign_flip([Fraction(d) for d in o["input"]["d"]]).value == Fraction(o["expected"]["two_sided"])


@oracles("sf-mc")
def test_a_drawn_p_value_is_never_zero(o: dict) -> None:
    differences = [Fraction(1, k) for k in range(2, 32)]  # 2^30 different sums: not enumerable; all positive: nothing is as extreme
    p = sign_flip(differences, resamples=o["input"]["resamples"])
    assert p.value == Fraction(o["expected"]["p"])
    assert p.method == "sign-flip, 999 draws, seed 0"


def test_sign_flip_equals_all_sign_patterns() -> None:
    draw = random.Random(7)
    for _ in range(60):
        d = [Fraction(draw.randint(-6, 6), draw.choice((1, 2, 4))) for _ in range(draw.randint(1, 8))]
        patterns = [abs(sum(s * x for s, x in zip(signs, d, strict=True))) for signs in itertools.product((-1, 1), repeat=len(d))]
        assert sign_flip(d).value == Fraction(sum(p >= abs(sum(d)) for p in patterns), len(patterns))


def test_sign_flip_agrees_with_mcnemar_on_pass_and_fail() -> None:
    for b, c in itertools.product(range(7), repeat=2):
        assert sign_flip([1] * b + [-1] * c + [0, 0]).value == mcnemar(b, c).value


def test_a_drawn_sign_flip_agrees_with_the_exact_one() -> None:
    rng = np.random.default_rng(3)
    d = [int(x) * 10**6 + k for k, x in enumerate(rng.integers(-3, 5, 60))]
    drawn = sign_flip(d, resamples=50_000)
    assert drawn.method == "sign-flip, 50000 draws, seed 0"
    sums = rng.choice([-1, 1], (20_000, 60)) @ np.array(d)  # second route: a sign per difference
    assert float(drawn.value) == pytest.approx((abs(sums) >= abs(sum(d))).mean(), abs=0.016)
    assert sign_flip(d) == sign_flip(d)  # seeded


def test_sign_flip_refuses_nothing_floats_and_endless_numbers() -> None:
    for bad in ([], [0.1], [True]):
        with pytest.raises(InputError):
            sign_flip(bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="digits"):
        sign_flip([Fraction(1, p) for p in (10**9 + 7, 10**9 + 9, 998244353)] + [Fraction(1, k) for k in range(2, 60)])
    assert sign_flip([1]).value == 1


@oracles("mt-holm")
def test_holm_matches(o: dict) -> None:
    assert [float(p) for p in holm([Fraction(str(p)) for p in o["input"]["p"]])] == pytest.approx(o["expected"]["holm"], abs=1e-12)


def test_holm_of_one_is_itself_never_above_one_and_keeps_the_order_given() -> None:
    assert holm([Fraction(1, 20)]) == [Fraction(1, 20)]
    assert holm([]) == []
    assert holm([Fraction(9, 10), Fraction(1, 100), Fraction(8, 10)]) == [Fraction(1), Fraction(3, 100), Fraction(1)]


# Paired comparison of two candidates


def test_paired_comparison_names_what_was_repaired_and_what_regressed() -> None:
    campaign = read_campaign()
    p = paired(campaign.of("CLAUDE"), campaign.of("BASELINE"), at_least=2)
    assert (p.repaired, p.regressed, p.instances, p.difference) == (("i1", "i2"), ("i6",), 6, Fraction(1, 6))
    assert p.test.value == mcnemar(2, 1).value == 1
    assert p.interval == tango(2, 1, 6)
    assert p.differences == (2, 2, 1, 0, 0, -2)
    once = paired(campaign.of("MERGE"), campaign.of("CLAUDE"), at_least=1)
    assert (once.repaired, once.regressed) == (("i4", "i5"), ())


def test_a_twelfth_more_cells_on_six_instances_decides_nothing() -> None:
    campaign = read_campaign()
    p = paired(campaign.of("MERGE"), campaign.of("CLAUDE"), at_least=2)
    low, high = ends(p.interval)
    assert low < 0 < high
    assert p.test.value == 1


def test_clustered_pairs_get_no_tango_interval() -> None:
    campaign = read_campaign()
    p = paired(campaign.of("CLAUDE"), campaign.of("BASELINE"), at_least=2, clusters=["a", "a", "b", "b", "c", "c"])
    assert p.interval == cr2_difference([1, 1, 0, 0, 0, -1], ["a", "a", "b", "b", "c", "c"])
    assert p.test == sign_flip([2, 0, -1])
    one = paired(campaign.of("CLAUDE"), campaign.of("BASELINE"), at_least=2, clusters=["a"] * 6)
    assert isinstance(one.interval, Unavailable)


def test_pairs_need_the_same_complete_instances() -> None:
    campaign, other = read_campaign(), campaign_of({"A": [2, 1], "B": [1, 1]})
    with pytest.raises(InputError):
        paired(campaign.of("CLAUDE"), other.of("A"), at_least=1)
    with pytest.raises(RuleError):
        paired(campaign.of("CLAUDE"), campaign.of("MERGE"), at_least=3)
    codes = other.codes.copy()
    codes[0, 0, 0] = CODE["timeout"]
    with pytest.raises(CoverageError):
        paired(replace(other, codes=codes).of("A"), other.of("B"), at_least=1)


# Selection stability

PUBLISHED = {
    "by_mean": ([cell_mean], {"MERGE": "1813/2916", "tie": "8989/46656", "CLAUDE": "8659/46656"}),
    "by_fail_closed": ([fail_closed], {"CLAUDE": "31031/46656", "tie": "15625/46656", "MERGE": "0"}),
    "by_fail_closed_then_mean": ([fail_closed, cell_mean], {"CLAUDE": "31031/46656", "MERGE": "931/2916", "tie": "1/64"}),
}


@pytest.mark.parametrize("key", PUBLISHED)
def test_stability_of_the_published_fixture_is_exact(key: str) -> None:
    reductions, shares = PUBLISHED[key]
    s = selection_stability(read_campaign(), reductions, ["CLAUDE", "MERGE"])
    assert isinstance(s, Stability)
    assert {**s.wins, "tie": s.tie} == {name: Fraction(share) for name, share in shares.items()}
    assert s.error is None
    if BY_ID:
        assert {**s.wins, "tie": s.tie} == {name: Fraction(share) for name, share in BY_ID["stab-01"]["expected"][key].items()}


def test_stability_to_three_places_as_a_report_says_it() -> None:
    campaign = read_campaign()
    by_mean = selection_stability(campaign, [cell_mean], ["CLAUDE", "MERGE"])
    by_key = selection_stability(campaign, read_rule().key, ["CLAUDE", "MERGE"])
    assert isinstance(by_mean, Stability)
    assert isinstance(by_key, Stability)
    assert [f"{float(x):.3f}" for x in (by_mean.wins["MERGE"], by_mean.tie, by_mean.wins["CLAUDE"])] == ["0.622", "0.193", "0.186"]
    assert [f"{float(x):.3f}" for x in (by_key.wins["CLAUDE"], by_key.wins["MERGE"], by_key.tie)] == ["0.665", "0.319", "0.016"]


def test_stability_equals_all_resamples_of_a_campaign_with_three_candidates() -> None:
    passed = {"A": [2, 0, 1, 1], "B": [1, 1, 1, 2], "C": [0, 2, 2, 0]}
    for reductions in ([fail_closed, cell_mean], [pass_hat(2)], [passing_cells, fail_closed]):
        s = selection_stability(campaign_of(passed), reductions)
        counts: Counter[str] = Counter()
        for draw in itertools.product(range(4), repeat=4):
            keys = {}
            for c in passed:
                drawn = np.array([passed[c][i] for i in draw], np.int64)
                view = Instances(c, tuple(map(str, range(4))), drawn, 2 - drawn, np.full(4, 2, np.int64))
                keys[c] = tuple(r(view) for r in reductions)
            top = [c for c, key in keys.items() if key == max(keys.values())]
            counts[top[0] if len(top) == 1 else "tie"] += 1
        assert isinstance(s, Stability)
        assert {**s.wins, "tie": s.tie} == {name: Fraction(counts[name], 4**4) for name in (*passed, "tie")}


def test_drawn_stability_is_seeded_and_within_its_error_of_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = read_campaign()
    exact = selection_stability(campaign, read_rule().key, ["CLAUDE", "MERGE"])
    monkeypatch.setattr("evalkit.uncertainty._MOST_RESAMPLES", 0)
    drawn = selection_stability(campaign, read_rule().key, ["CLAUDE", "MERGE"])
    assert isinstance(exact, Stability)
    assert isinstance(drawn, Stability)
    assert drawn == selection_stability(campaign, read_rule().key, ["CLAUDE", "MERGE"])
    assert drawn.error is not None
    for name, share in exact.wins.items():
        assert abs(float(drawn.wins[name] - share)) < 4 * drawn.error
    assert sum(drawn.wins.values()) + drawn.tie == 1
    monkeypatch.setattr("evalkit.uncertainty._CHUNK", 60)  # the draws come in many portions
    portions = selection_stability(campaign, read_rule().key, ["CLAUDE", "MERGE"], resamples=999)
    assert isinstance(portions, Stability)
    assert abs(float(portions.wins["CLAUDE"] - exact.wins["CLAUDE"])) < 0.07


def test_many_patterns_and_few_patterns_are_drawn_alike() -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 3, (2, 300))
    few = campaign_of({"A": rows[0].tolist(), "B": rows[1].tolist()})
    s = selection_stability(few, [cell_mean], resamples=4000)
    assert isinstance(s, Stability)
    assert "9 patterns" in s.note
    gain = rows[0] - rows[1]
    totals = rng.choice(gain, (4000, 300)).sum(axis=1)  # second route: draw instances, not patterns
    assert float(s.wins["A"]) == pytest.approx((totals > 0).mean(), abs=0.04)


def test_what_the_first_element_leaves_tied_is_drawn_out_into_instances() -> None:
    rows = np.random.default_rng(11).integers(0, 3, (2, 60))
    s = selection_stability(campaign_of({"A": rows[0].tolist(), "B": rows[1].tolist()}), [fail_closed, cell_mean], resamples=20_000)
    assert isinstance(s, Stability)
    assert s.note == "60 instances, 9 patterns"  # 4 of them in instances held: under a tenth of 60, where 9 are not
    chance = {(0, 0): 1.0}  # second route: the exact distribution of A minus B, in instances held and in passes, draw by draw
    steps = Counter(zip(((rows[0] == 2).astype(int) - (rows[1] == 2)).tolist(), (rows[0] - rows[1]).tolist(), strict=True))
    for _ in range(60):
        further: Counter[tuple[int, int]] = Counter()
        for (held, passed), p in chance.items():
            for (more, higher), times in steps.items():
                further[held + more, passed + higher] += p * times / 60
        chance = dict(further)
    expected = {"A": sum(p for key, p in chance.items() if key > (0, 0)), "B": sum(p for key, p in chance.items() if key < (0, 0))}
    assert sum(p for (held, _), p in chance.items() if held == 0) > 0.05  # enough of them hang on the second element
    assert s.error is not None
    for name, share in expected.items():
        assert float(s.wins[name]) == pytest.approx(share, abs=5 * s.error)


def test_stability_resamples_clusters_whole() -> None:
    campaign = campaign_of({"A": [2, 2, 0, 0], "B": [0, 0, 1, 1]}, clusters=("x", "x", "y", "y"))
    s = selection_stability(campaign, [fail_closed])
    # xx, xy, yx: A first; yy: both 0, a tie.
    assert isinstance(s, Stability)
    assert (s.wins["A"], s.wins["B"], s.tie) == (Fraction(3, 4), 0, Fraction(1, 4))
    assert s.note == "2 clusters, 2 patterns"


def test_stability_is_unavailable_where_nothing_can_be_drawn_or_selected() -> None:
    one = selection_stability(campaign_of({"A": [2], "B": [1]}), [cell_mean])
    assert str(one) == "unavailable: one of the instances cannot be drawn differently"
    cluster = selection_stability(campaign_of({"A": [2, 1], "B": [1, 1]}, clusters=("x", "x")), [cell_mean])
    assert isinstance(cluster, Unavailable)
    alone = selection_stability(campaign_of({"A": [2, 1]}), [cell_mean])
    assert isinstance(alone, Unavailable)

    @unit("instances")
    def own(instances: Instances) -> int:
        return int(instances.passed.max())

    assert "own" in str(selection_stability(campaign_of({"A": [2, 1], "B": [1, 1]}), [own]))


def test_an_incomplete_candidate_is_left_out_by_name() -> None:
    campaign = campaign_of({"A": [2, 1], "B": [1, 1], "C": [2, 2]})
    codes = campaign.codes.copy()
    codes[0, 2, 0] = CODE["timeout"]
    s = selection_stability(replace(campaign, codes=codes), [cell_mean])
    assert isinstance(s, Stability)
    assert sorted(s.wins) == ["A", "B"]
    assert s.note.endswith("incomplete and left out: C")
    counted = selection_stability(replace(campaign, codes=codes), [cell_mean], count_as_fail=["timeout"])
    assert isinstance(counted, Stability)
    assert sorted(counted.wins) == ["A", "B", "C"]


def test_stability_of_scores_and_costs_is_exact_too() -> None:
    numbers = np.array([[[1, 5, 0], [2, 2, 2]]], np.int64)
    column = Column(numbers, 3, np.ones((1, 2, 3), bool))
    campaign = replace(campaign_of({"A": [1, 1, 1], "B": [1, 1, 1]}, 1), columns={"score": column, "cost": column})
    s, cost = (selection_stability(campaign, [r]) for r in (mean_score, lowest("cost")))
    totals = [sum(numbers[0, 0, list(draw)]) - sum(numbers[0, 1, list(draw)]) for draw in itertools.product(range(3), repeat=3)]
    assert isinstance(s, Stability)
    assert isinstance(cost, Stability)
    assert s.wins["A"] == Fraction(sum(t > 0 for t in totals), 27) == cost.wins["B"]
    gap = replace(column, present=np.array([[[True, False, True], [True] * 3]]))
    assert isinstance(selection_stability(replace(campaign, columns={"cost": gap}), [lowest("cost")]), Unavailable)


def test_a_large_campaign_is_resampled_at_once() -> None:
    rng = np.random.default_rng(2)
    codes = np.where(rng.random((3, 5, 20_000)) < 0.7, PASS, FAIL).astype(np.uint8)
    campaign = Campaign(tuple("ABCDE"), tuple(map(str, range(20_000))), ("0", "1", "2"), codes)
    s = selection_stability(campaign, [fail_closed, cell_mean], resamples=2000)
    assert isinstance(s, Stability)
    assert sum(s.wins.values()) + s.tie == 1


# False promotion


def exact_share(rule: ReleaseRule, n: int, p: Fraction, repetitions: int, challengers: int) -> tuple[float, float]:
    """Every key of one candidate with its chance; then the best of the challengers against the incumbent."""
    chance: Counter[tuple] = Counter()
    for rows in itertools.combinations_with_replacement(range(repetitions + 1), n):
        ways = math.factorial(n) // math.prod(math.factorial(k) for k in Counter(rows).values())
        weight = ways * math.prod(math.comb(repetitions, k) * p**k * (1 - p) ** (repetitions - k) for k in rows)
        passed = np.array(rows, np.int64)
        view = Instances("c", tuple(map(str, range(n))), passed, repetitions - passed, np.full(n, repetitions, np.int64))
        chance[tuple(r(view) for r in rule.key)] += weight
    promoted = tied = Fraction(0)
    span = len(rule.key) if rule.tie_breakers_may_promote else 1
    for key, at in chance.items():
        below = sum(w for k, w in chance.items() if k < key)
        worse = sum(w for k, w in chance.items() if k[:span] < key[:span])
        if (rule.floor is not None and key[0] < rule.floor) or (rule.tie_breakers_may_promote and not key[0]):
            continue
        sole = challengers * at * below ** (challengers - 1)
        promoted += sole * worse
        tied += ((below + at) ** challengers - below**challengers - sole) * worse
    return float(promoted), float(tied)


@pytest.mark.parametrize(
    ("rule", "n", "p", "repetitions", "challengers"),
    [
        (read_rule(), 6, Fraction(1, 2), 2, 5),
        (replace(read_rule(), tie_breakers=()), 6, Fraction(4, 5), 2, 5),
        (replace(read_rule(), tie_breakers_may_promote=True, floor=2), 5, Fraction(1, 2), 3, 2),
        (replace(read_rule(), tie_breakers_may_promote=True), 3, Fraction(1, 2), 2, 2),
        (ReleaseRule("r", "o", "p", cell_mean, floor=Fraction(1, 2)), 6, Fraction(1, 2), 2, 1),
    ],
)
def test_false_promotion_equals_its_exact_distribution(rule: ReleaseRule, n: int, p: Fraction, repetitions: int, challengers: int) -> None:
    found = false_promotion(rule, [p] * n, repetitions, challengers)
    promoted, tied = exact_share(rule, n, p, repetitions, challengers)
    assert isinstance(found, FalsePromotion)
    assert found.promoted == pytest.approx(promoted, abs=0.014)  # four standard errors
    assert found.tied == pytest.approx(tied, abs=0.014)
    assert found.error < 0.0036


def test_five_equal_candidates_on_six_instances_pass_a_strict_rule_seven_times_in_ten() -> None:
    promoted, tied = exact_share(read_rule(), 6, Fraction(1, 2), 2, 5)
    assert round(promoted + tied, 1) == 0.7
    found = false_promotion(read_rule(), [Fraction(1, 2)] * 6, 2, 5)
    assert isinstance(found, FalsePromotion)
    assert found.share == pytest.approx(promoted + tied, abs=0.014)
    assert str(found).startswith("5 challengers that do not differ from the incumbent, 6 instances, 2 repetitions: the best is above the")
    assert found == false_promotion(read_rule(), [Fraction(1, 2)] * 6, 2, 5)


def test_false_promotion_is_what_the_gate_itself_does_on_drawn_campaigns() -> None:
    chances = [Fraction(9, 10), Fraction(1, 2), Fraction(1, 10), Fraction(1, 2)]
    rng = np.random.default_rng(11)
    hits, draws = 0, 300
    for _ in range(draws):
        codes = np.where(rng.random((2, 3, 4)) < np.array([float(c) for c in chances]), PASS, FAIL).astype(np.uint8)
        drawn = Campaign(("a", "b", "z"), tuple("wxyz"), ("0", "1"), codes)
        hits += decide(drawn, read_rule(), incumbent="z").verdict == PROMOTE
    found = false_promotion(read_rule(), chances, 2, 2)
    assert isinstance(found, FalsePromotion)
    assert found.promoted == pytest.approx(hits / draws, abs=4 * math.sqrt(0.25 / draws))


def test_a_gate_that_nothing_can_pass_still_has_an_error() -> None:
    found = false_promotion(read_rule(), [Fraction(1)] * 6, 2, 5)
    assert isinstance(found, FalsePromotion)
    assert found.share == 0
    assert found.error > 0


def test_false_promotion_refuses_or_says_what_it_has_no_model_for() -> None:
    assert "mean_score" in str(false_promotion(ReleaseRule("r", "o", "p", mean_score), [Fraction(1, 2)], 2, 1))
    for chances, repetitions, challengers in (([], 2, 1), ([Fraction(1, 2)], 0, 1), ([Fraction(1, 2)], 2, 0), ([Fraction(3, 2)], 2, 1)):
        with pytest.raises(InputError):
            false_promotion(read_rule(), chances, repetitions, challengers)


def test_pooled_chances_are_the_shares_over_all_candidates() -> None:
    assert pooled_chances(read_campaign()) == (
        Fraction(2, 3),
        Fraction(1, 2),
        Fraction(1, 3),
        Fraction(1, 6),
        Fraction(1, 6),
        Fraction(1, 3),
    )
    campaign = campaign_of({"A": [2], "B": [1]})
    with pytest.raises(CoverageError):
        pooled_chances(replace(campaign, codes=np.full_like(campaign.codes, CODE["absent"])))


# Power


@oracles("pow-01")
def test_power_of_mcnemar_matches_the_enumeration(o: dict) -> None:
    i = o["input"]
    found = [mcnemar_power(i["p10"], i["p01"], n, alpha=i["alpha"]) for n in i["n"]]
    assert found == pytest.approx(o["expected"]["exact"], abs=o["tolerance"])
    assert mcnemar_power(i["p10"], i["p01"], 100, mid=True) == pytest.approx(o["expected"]["mid_p_n100"], abs=o["tolerance"])


@oracles("pow-02")
def test_six_instances_reach_five_percent_only_by_a_sweep(o: dict) -> None:
    assert mcnemar_power(o["input"]["p10"], o["input"]["p01"], o["input"]["n"]) == pytest.approx(float(Fraction(o["expected"]["power"])))


def test_power_equals_the_sum_over_all_tables() -> None:
    for n, mid, (p10, p01) in itertools.product((6, 9, 12), (False, True), ((0.3, 0.1), (0.5, 0.5), (0.05, 0.05))):
        total = 0.0
        for b in range(n + 1):
            for c in range(n + 1 - b):
                if mcnemar(b, c, mid=mid).value <= Fraction(1, 20):
                    total += math.comb(n, b) * math.comb(n - b, c) * p10**b * p01**c * (1 - p10 - p01) ** (n - b - c)
        assert mcnemar_power(p10, p01, n, mid=mid) == pytest.approx(total, abs=1e-12)


def test_the_smallest_sample_with_eighty_percent_power_is_249_not_the_234_of_the_approximation() -> None:
    assert mcnemar_power(0.2, 0.1, 234) == pytest.approx(0.7756, abs=1e-4)
    assert mcnemar_power(0.2, 0.1, 248) < 0.8 <= mcnemar_power(0.2, 0.1, 249)
    assert mcnemar_power(0.2, 0.1, 100) == pytest.approx(0.37307708430182, abs=1e-9)


def test_fewer_than_six_instances_have_no_power_at_all() -> None:
    assert [mcnemar_power(1, 0, n) for n in (1, 5, 6)] == [0, 0, 1]
    assert mcnemar_power(0, 0, 100) == 0
    with pytest.raises(InputError):
        mcnemar_power(0.7, 0.7, 10)
    with pytest.raises(InputError):
        mcnemar_power(0.1, 0.1, 0)


@oracles("pow-04")
def test_repetitions_buy_instances_down_to_a_limit(o: dict) -> None:
    i = o["input"]
    found = [
        instances_needed(i["delta"], float(Fraction(i["omega2"])), 2 * float(Fraction(s)), 1 if k == "inf" else k)
        for s, k in zip(i["sigma2"], i["K"], strict=True)
    ]
    assert found == o["expected"]["n"]


def test_millers_worked_example_and_its_refusals() -> None:
    assert [instances_needed(0.03, 1 / 9, within, k) for within, k in ((0, 1), (1 / 3, 1), (1 / 3, 10))] == [969, 3876, 1260]
    for bad in ((0, 0.1, 0.1, 1), (0.03, -0.1, 0.1, 1), (0.03, 0.1, -0.1, 1), (0.03, 0.1, 0.1, 0)):
        with pytest.raises(InputError):
            instances_needed(*bad)


# The module as a whole


def test_importing_the_kit_does_not_import_scipy() -> None:
    code = "import sys, evalkit, evalkit.bounds, evalkit.uncertainty, evalkit.counterexample; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_standardised_estimates_lie_inside_their_intervals() -> None:
    draw = random.Random(1)
    weights = {"x": Fraction(1, 3), "y": Fraction(2, 3)}
    for _ in range(50):
        counts = {g: (draw.randint(0, n), n) for g in "xy" for n in [draw.randint(1, 30)]}
        tally = Tally.of("t", counts)
        low, high = ends(mover(tally, weights))
        assert 0 <= low <= float(standardise(tally, weights)) <= high <= 1
        assert high > low


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, math.nan, 2**-60, 1 - 2**-53])
def test_a_confidence_that_is_none_or_all_is_refused_with_clusters_too(confidence: float) -> None:
    with pytest.raises(InputError, match="a share between 0 and 1"):
        cr2_difference([1, 0, 0], ["x", "y", "z"], confidence=confidence)
    with pytest.raises(InputError, match="a share between 0 and 1"):
        clustered_wilson([1, 0, 1], [2, 2, 2], confidence=confidence)


@pytest.mark.parametrize(("numbers", "alpha", "power"), [((0.1, 0.1, 0.1), 0.05, 1), ((0.1, 0.1, 0.1), 0.05, math.nan), ((math.nan, 0.1, 0.1), 0.05, 0.8), ((0.1, math.inf, 0.1), 0.05, 0.8)])  # fmt: skip
def test_power_asks_for_numbers_that_have_an_answer(numbers: tuple[float, float, float], alpha: float, power: float) -> None:
    with pytest.raises(InputError, match="a power between 0 and 1"):
        instances_needed(*numbers, 2, alpha=alpha, power=power)


def test_a_small_level_may_be_written_as_python_writes_it() -> None:
    assert mcnemar_power(0.9, 0, 30, alpha=1e-5) == mcnemar_power(0.9, 0, 30, alpha=0.00001) > 0.9
    for alpha in (0, 1, 2, math.nan):
        with pytest.raises(InputError, match="alpha between 0 and 1"):
            mcnemar_power(0.9, 0, 30, alpha=alpha)

"""Pass rates under a declared mix: exact, named, refused where a group is missing."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from evalkit import (
    CoverageError,
    EvalkitError,
    MixError,
    RecordError,
    Reference,
    Tally,
    compare,
    decompose,
    dominates,
    equal_weights,
    flip_mix,
    group_rates,
    observed_mix,
    observed_rate,
    read_reference,
    read_tallies,
    reverses,
    standardise,
)
from evalkit.decide import MET, NOT_EVALUATED, NOT_MET

F = Fraction


@pytest.fixture(scope="module")
def before():
    return read_tallies()["baseline"]


@pytest.fixture(scope="module")
def after():
    return read_tallies()["candidate"]


@pytest.fixture(scope="module")
def reference():
    return read_reference()


def test_the_observed_rate_rises_from_45_to_75_per_cent_while_every_group_falls(before, after):
    assert (observed_rate(before), observed_rate(after)) == (F(45, 100), F(75, 100))
    assert group_rates(before) == {"complex": F(40, 100), "routine": F(90, 100)}
    assert group_rates(after) == {"complex": F(30, 100), "routine": F(80, 100)}
    assert reverses(before, after)
    assert dominates(before, after)
    assert not dominates(after, before)


def test_at_the_reference_mix_the_candidate_scores_35_per_cent(before, after, reference):
    assert (standardise(before, reference), standardise(after, reference)) == (F(45, 100), F(35, 100))
    by_hand = F(1, 10) * F(720, 900) + F(9, 10) * F(30, 100)
    assert standardise(after, reference) == by_hand


def test_at_equal_weights_it_is_65_against_55(before, after):
    assert [standardise(t, equal_weights(t.groups)) for t in (before, after)] == [F(65, 100), F(55, 100)]


def test_the_baseline_at_its_own_mix_ties_itself_exactly_and_in_floats_it_would_not(before):
    assert standardise(before, observed_mix(before)) == observed_rate(before)
    assert 0.1 * 0.9 + 0.9 * 0.4 != 0.45


def test_the_change_is_minus_ten_of_rates_and_plus_forty_of_mix(before, after):
    split = decompose(before, after)
    assert (split.change, split.rate_effect, split.mix_effect) == (F(3, 10), F(-1, 10), F(2, 5))
    assert split.rate_effect + split.mix_effect == split.change
    assert sum(split.rate_by_group.values()) == split.rate_effect
    assert sum(split.mix_by_group.values()) == split.mix_effect


def test_a_decomposition_changes_its_sign_with_the_direction(before, after):
    there, back = decompose(before, after), decompose(after, before)
    assert (there.rate_effect, there.mix_effect) == (-back.rate_effect, -back.mix_effect)


def test_equal_mixes_have_no_mix_effect_and_equal_rates_no_rate_effect():
    a, b = Tally.of("a", {"x": (8, 10), "y": (1, 10)}), Tally.of("b", {"x": (3, 20), "y": (9, 20)})
    assert decompose(a, b).mix_effect == 0
    a, b = Tally.of("a", {"x": (8, 10), "y": (1, 10)}), Tally.of("b", {"x": (80, 100), "y": (1, 10)})
    assert decompose(a, b).rate_effect == 0


def test_the_two_fold_split_is_the_mean_of_the_two_one_at_a_time_splits(before, after):
    w0, w1, r0, r1 = observed_mix(before), observed_mix(after), group_rates(before), group_rates(after)
    rates_first = sum(w0[g] * (r1[g] - r0[g]) for g in w0)
    rates_last = sum(w1[g] * (r1[g] - r0[g]) for g in w0)
    assert decompose(before, after).rate_effect == (rates_first + rates_last) / 2


def test_the_rate_effect_is_not_the_change_at_the_reference_where_the_groups_fall_unlike(reference):
    a, b = Tally.of("a", {"routine": (90, 100), "complex": (360, 900)}), Tally.of("b", {"routine": (630, 900), "complex": (38, 100)})
    assert decompose(a, b).rate_effect != standardise(b, reference) - standardise(a, reference)


# Refusals


@pytest.mark.parametrize(
    ("counts", "kind", "words"),
    [
        ({"routine": (8, 10)}, MixError, "group complex missing"),
        ({"routine": (8, 10), "complex": (3, 10), "new": (1, 1)}, MixError, "group new of"),
        ({"routine": (8, 10), "other": (3, 10)}, MixError, "group complex missing from .* and group other of"),
        ({"routine": (8, 10), "complex": (0, 0)}, MixError, "no assessed request in group complex"),
        ({"routine": (8, 10), "complex": (3, 9, 10)}, CoverageError, "complex 9 of 10 assessed"),
        ({"routine": (8, 10), "Complex": (3, 10)}, MixError, "missing"),
    ],
)
def test_a_standardised_rate_is_refused_and_never_rescaled(reference, counts, kind, words):
    with pytest.raises(kind, match=words):
        standardise(Tally.of("p", counts), reference)
    with pytest.raises(kind):
        decompose(Tally.of("p", counts), read_tallies()["baseline"])


def test_a_group_of_weight_zero_still_needs_a_rate():
    with pytest.raises(MixError, match="0/0 is not a rate"):
        standardise(Tally.of("p", {"x": (1, 2), "y": (0, 0)}), {"x": F(1), "y": F(0)})


def test_nothing_assessed_has_no_rate_and_no_mix():
    empty = Tally.of("p", {"x": (0, 0, 5)})
    for ask in (observed_rate, observed_mix):
        with pytest.raises(CoverageError, match="no assessed request"):
            ask(empty)


@pytest.mark.parametrize(
    "weights",
    [{}, {"x": F(9, 10)}, {"x": F(1, 2), "y": F(2, 5)}, {"x": F(-1, 10), "y": F(11, 10)}, {"x": 0.5, "y": 0.5}, {"x": True}, {"x": "1"}, {"x": None},
     {"x": np.int64(1)}, {"x": F(np.int64(1), np.int64(2)), "y": F(1, 2)}, {"x": float("nan")}],
    ids=repr,
)  # fmt: skip
def test_weights_are_exact_not_negative_and_sum_to_one(weights):
    with pytest.raises(MixError):
        standardise(Tally.of("p", {"x": (1, 2), "y": (1, 2)}), weights)
    with pytest.raises(MixError):
        Reference("r", "g", weights, "v")


def test_no_other_policy_for_a_missing_group_is_offered():
    with pytest.raises(RecordError, match="comparison_unavailable"):
        Reference("r", "g", {"x": F(1)}, "v", missing_group_policy="rescale")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tally.of("p", {}),
        lambda: Tally.of("p", {"x": (1,)}),
        lambda: Tally.of("p", {"x": (1, 2, 3, 4)}),
        lambda: Tally.of("p", {"x": (3, 2)}),
        lambda: Tally.of("p", {"x": (1, 3, 2)}),
        lambda: Tally.of("p", {"x": (-1, 2)}),
        lambda: Tally.of("p", {"x": (1.0, 2)}),
        lambda: Tally.of("p", {"x": (True, 2)}),
        lambda: Tally.of("p", {"x": ("1", "2")}),
        lambda: Tally.of("p", {"x": ("one", 2)}),
        lambda: Tally.of("p", {"x": (np.int64(1), np.int64(2))}),
        lambda: Tally.of("p", {"x": (0, 10**5000)}),
        lambda: Tally("p", ("x", "x"), (1, 1), (2, 2), (2, 2)),
        lambda: Tally("p", ("x",), (1, 2), (2,), (2,)),
        lambda: Tally("p", ("x", "y"), (1,), (2,), (2,)),
    ],
)
def test_a_tally_that_cannot_be_is_refused(make):
    with pytest.raises(EvalkitError):
        make()


# Dominance and the flip


def test_dominance_holds_at_every_mix_of_a_fine_grid_and_fails_at_one_where_it_does_not(before, after):
    crossing = Tally.of("c", {"complex": (50, 100), "routine": (70, 100)})
    for a, b in itertools.permutations((before, after, crossing), 2):
        mixes = [{"complex": F(n, 50), "routine": 1 - F(n, 50)} for n in range(51)]
        differences = [standardise(a, mix) - standardise(b, mix) for mix in mixes]
        assert dominates(a, b) == (min(differences) >= 0 and max(differences) > 0)


def test_equal_groups_dominate_in_neither_direction(before):
    assert not dominates(before, before)


def test_at_the_flip_mix_both_tie_and_beyond_it_the_order_turns():
    a, b = Tally.of("a", {"x": (8, 10), "y": (2, 10)}), Tally.of("b", {"x": (6, 10), "y": (6, 10)})
    mix = flip_mix(a, b)
    assert mix == {"x": F(2, 3), "y": F(1, 3)}
    assert standardise(a, mix) == standardise(b, mix)
    signs = [standardise(a, {"x": x, "y": 1 - x}) - standardise(b, {"x": x, "y": 1 - x}) for x in (F(3, 5), F(7, 10))]
    assert signs[0] < 0 < signs[1]


def test_without_a_flip_there_is_no_flip_mix(before, after):
    assert flip_mix(before, after) is None
    assert flip_mix(before, before) is None
    touching = Tally.of("t", {"complex": (50, 100), "routine": (90, 100)})
    assert flip_mix(before, touching) is None  # they meet where one group has all the weight, and nothing turns beyond it


def test_a_flip_mix_needs_two_groups():
    three = Tally.of("t", {"x": (1, 2), "y": (1, 2), "z": (1, 2)})
    with pytest.raises(MixError, match="3 groups"):
        flip_mix(three, three)


def test_a_change_in_the_direction_of_every_group_is_no_reversal(before):
    better = Tally.of("b", {"complex": (50, 100), "routine": (99, 100)})
    assert not reverses(before, better)
    assert not reverses(before, before)


def test_an_observed_rate_that_stays_while_a_group_rises_is_hidden_by_the_mix_but_is_no_reversal():
    a, b = Tally.of("a", {"x": (9, 10), "y": (0, 10)}), Tally.of("b", {"x": (9, 9), "y": (0, 11)})
    assert observed_rate(a) == observed_rate(b)
    assert dominates(b, a)
    assert not reverses(a, b)


# The comparison


def test_a_comparison_shows_everything_and_never_promotes(before, after, reference):
    shown = compare(before, after, reference)
    assert shown.verdict == "compared"
    assert (shown.observed, shown.standardised, shown.equal) == ((F(9, 20), F(3, 4)), (F(9, 20), F(7, 20)), (F(13, 20), F(11, 20)))
    assert shown.reversal is True
    assert shown.bound is False
    assert "falls: 45.0% to 35.0%" in shown.reasons[0]


@pytest.mark.parametrize(
    "counts", [{"routine": (8, 10)}, {"routine": (8, 10), "complex": (0, 0)}, {"routine": (8, 10), "complex": (3, 9, 10)}]
)
def test_a_comparison_without_a_group_is_unavailable_with_its_reason(before, reference, counts):
    shown = compare(before, Tally.of("p", counts), reference)
    assert (shown.verdict, shown.standardised, shown.decomposition) == ("unavailable", (None, None), None)
    assert shown.observed[0] == F(9, 20)
    assert len(shown.reasons) == 1


def test_data_bound_to_another_grouping_rule_or_grader_are_refused(before, after, reference):
    same = {"grouping_rule": "task_type_v1", "grader_version": "fixture_boolean_v1"}
    counts = {"routine": (8, 10), "complex": (3, 10)}
    assert compare(Tally.of("a", counts, same), Tally.of("b", counts, same), reference).bound
    assert not compare(Tally.of("a", counts, same), after, reference).bound
    for key in same:
        with pytest.raises(MixError, match=f"{key} 'other'"):
            compare(before, Tally.of("b", counts, {**same, key: "other"}), reference)


def test_a_blocking_group_is_decided_outside_the_weights(before, reference):
    for counts, state in (((10, 10), MET), ((9, 10), NOT_MET), ((9, 9, 10), NOT_EVALUATED), ((8, 9, 10), NOT_MET), ((0, 0), NOT_EVALUATED)):
        shown = compare(before, Tally.of("b", {"routine": (8, 10), "complex": counts}), reference, ["complex"])
        assert [condition.state for condition in shown.blocking] == [state]
    with pytest.raises(MixError, match="no blocking group 'safety'"):
        compare(before, before, reference, ["safety"])


def test_equal_weights_are_an_owners_choice_and_not_the_traffic(before):
    assert equal_weights(("x", "y", "z")) == {"x": F(1, 3), "y": F(1, 3), "z": F(1, 3)}
    assert equal_weights(before.groups) != observed_mix(before)


def test_counts_beyond_64_bits_stay_exact():
    n = 10**18 - 1
    tally = Tally.of("p", {f"g{k}": (n - 1, n) for k in range(20)})
    assert observed_rate(tally) == F(n - 1, n)
    assert sum(observed_mix(tally).values()) == 1


# What only mutation testing missed


def test_a_comparison_says_every_reason_in_this_order(before, after, reference):
    assert compare(before, after, reference, ["routine"]).reasons == (
        "at the reference mix the rate falls: 45.0% to 35.0%",
        "the observed rate moves the other way than every group: the mix reversed it",
        "outside the weights, every request of group routine passed: not met (720 of 900 requests, 900 assessed)",
    )
    assert compare(after, before, reference).reasons[0] == "at the reference mix the rate rises: 35.0% to 45.0%"
    assert compare(before, before, reference).reasons == ("at the reference mix the rate stays: 45.0% to 45.0%",)


def test_a_comparison_that_is_unavailable_is_so_for_both_periods(before, reference):
    shown = compare(before, Tally.of("p", {"routine": (8, 10)}), reference)
    assert shown.standardised == shown.equal == (None, None)
    assert shown.decomposition is None
    assert shown.reversal is None


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("counts", [(), (1, 1)])
def test_a_tally_has_one_count_of_each_kind_for_each_group(place, counts):
    columns = [(1,), (1,), (1,)]
    columns[place] = counts
    with pytest.raises(MixError, match="one of each for the 1 groups"):
        Tally("p", ("x",), *columns)
    with pytest.raises(MixError, match="one of each for the 1 groups"):
        Tally("p", ("x",), *([(1,)] * (2 - place)), *([counts] * (place + 1)))


def test_a_tally_without_a_group_or_with_one_twice_is_told_so():
    with pytest.raises(MixError, match="found no group;"):
        Tally("p", (), (), (), ())
    with pytest.raises(MixError, match="found groups x, x;"):
        Tally("p", ("x", "x"), (1, 1), (1, 1), (1, 1))


def test_the_account_of_a_count_is_no_part_of_it():
    counts = ("p", ("x",), (1,), (2,), (2,))
    assert Tally(*counts, notes=("said",)) == Tally(*counts)


@pytest.mark.parametrize("policy", ["a", "rescale"])
def test_no_policy_before_or_after_it_in_the_alphabet_is_offered(policy):
    with pytest.raises(RecordError):
        Reference("r", "g", {"x": F(1)}, "v", missing_group_policy=policy)


def test_one_group_has_no_flip_mix():
    one = Tally.of("p", {"x": (1, 2)})
    with pytest.raises(MixError, match="1 groups"):
        flip_mix(one, one)


def test_a_reversal_needs_a_change_against_the_groups(before, after):
    assert reverses(after, before)  # down, while every group rises
    assert not reverses(Tally.of("p", {"x": (5, 10), "y": (5, 10)}), Tally.of("q", {"x": (4, 10), "y": (4, 10)}))
    stays = Tally.of("p", {"x": (2, 4), "y": (4, 4)}), Tally.of("q", {"x": (1, 4), "y": (8, 8)})
    assert observed_rate(stays[0]) == observed_rate(stays[1]) == F(3, 4)
    assert not reverses(*stays)


def test_a_refusal_names_twelve_groups_and_counts_the_others():
    many = {f"g{n}": (1, 1) for n in range(14)}
    with pytest.raises(MixError) as refused:
        decompose(Tally.of("p", many), Tally.of("q", {**many, "h": (1, 1)}))
    assert "g11 (1 of 1 assessed) and 2 more)" in str(refused.value)
    assert "g11 (1 of 1 assessed) and 3 more;" in str(refused.value)

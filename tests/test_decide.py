"""Rank, gate, three labels: selection is not promotion."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from evalkit import (
    InputError,
    Limit,
    RankKeyError,
    RuleError,
    at_least,
    cell_mean,
    decide,
    fail_closed,
    lowest,
    mean_score,
    pass_hat,
    passing_cells,
    rank,
    rank_key,
    read_campaign,
    read_rule,
    review,
    unit,
)
from evalkit.decide import KEEP, MET, NOT_EVALUATED, NOT_MET, PROMOTE, UNDECIDED, _exactly, parse_picker, parse_sign_offs, verdict_of
from evalkit.records import bundled

CLAUDE, MERGE, BASELINE = "TT TT TF FF FF FF", "TT TF FT TF FT FF", "FF FF FF FF FF TT"


def states(decision):
    return {condition.name: condition.state for condition in decision.conditions}


def numbers(decision, name):
    return next(condition.numbers for condition in decision.conditions if condition.name.startswith(name))


# The published result


def test_mean_picks_merge_but_the_release_rule_picks_claude_which_replaces_baseline():
    decision = decide(read_campaign(), read_rule(), incumbent="BASELINE")
    assert (decision.highest_mean, decision.winner, decision.verdict) == (("MERGE",), ("CLAUDE",), PROMOTE)
    assert decision.challenger == ("CLAUDE",)
    assert numbers(decision, "strictly above") == "CLAUDE 2 of 6 instances > BASELINE 1 of 6 instances"
    assert [(s.place, s.candidate, s.key) for s in decision.standings] == [
        (1, "CLAUDE", (2, Fraction(5, 12))),
        (2, "MERGE", (1, Fraction(1, 2))),
        (3, "BASELINE", (1, Fraction(1, 6))),
    ]


def test_the_published_campaign_says_the_same_when_its_letters_are_typed_again(grid):
    again = grid({"MERGE": MERGE, "BASELINE": BASELINE, "CLAUDE": CLAUDE})
    assert again.digest == read_campaign().digest


def test_claude_as_the_incumbent_stays():
    decision = decide(read_campaign(), read_rule(), incumbent="CLAUDE")
    assert (decision.winner, decision.challenger, decision.verdict) == (("CLAUDE",), ("MERGE",), KEEP)
    assert decision.reasons == ("strictly above the incumbent: not met (MERGE 1 of 6 instances < CLAUDE 2 of 6 instances)",)


def test_with_the_mean_as_the_rule_merge_replaces_baseline():
    decision = decide(read_campaign(), read_rule(bundled("fixtures/mean_rule.json")), incumbent="BASELINE")
    assert (decision.winner, decision.verdict) == (("MERGE",), PROMOTE)


def test_merge_against_baseline_is_one_equals_one_and_stays(grid):
    decision = decide(grid({"MERGE": MERGE, "BASELINE": BASELINE}), read_rule(), incumbent="BASELINE")
    assert (decision.winner, decision.challenger, decision.verdict) == (("MERGE",), ("MERGE",), KEEP)
    assert numbers(decision, "strictly above") == "MERGE 1 of 6 instances = BASELINE 1 of 6 instances"


def test_merge_replaces_baseline_only_where_the_rule_says_that_tie_breakers_may_promote(grid, rule):
    decision = decide(grid({"MERGE": MERGE, "BASELINE": BASELINE}), rule(tie_breakers_may_promote=True), incumbent="BASELINE")
    assert decision.verdict == PROMOTE
    assert numbers(decision, "strictly above") == "MERGE 6 of 12 cells (0.500) > BASELINE 2 of 12 cells (0.167)"


def test_a_full_tie_with_the_incumbent_stays_even_where_tie_breakers_may_promote(grid, rule):
    decision = decide(grid({"A": "TT TF", "B": "TF TT"}), rule(tie_breakers_may_promote=True), incumbent="B")
    assert (decision.winner, decision.verdict) == (("A", "B"), KEEP)


def test_the_picker_is_a_fourth_answer_and_the_cell_mean_by_default():
    campaign, release_rule = read_campaign(), read_rule()
    assert decide(campaign, release_rule, incumbent="BASELINE").picked == ("MERGE",)
    assert decide(campaign, release_rule, incumbent="BASELINE", picker=(fail_closed, cell_mean)).picked == ("CLAUDE",)


# Incomplete candidates


def test_one_missing_cell_of_claude_makes_it_ineligible_but_visible(grid, rule):
    decision = decide(grid({"CLAUDE": "TT TT TF FF FF F.", "MERGE": MERGE, "BASELINE": BASELINE}), rule(), incumbent="BASELINE")
    last = decision.standings[-1]
    assert (last.candidate, last.place, last.key, last.mean) == ("CLAUDE", None, None, None)
    assert (last.passed, last.failed, str(last.coverage)) == (5, 6, "11 of 12 cells (1 absent)")
    assert last.why_unplaced == "incomplete: 11 of 12 cells of 'CLAUDE' (short: i6)"
    assert (decision.winner, decision.challenger) == (("MERGE",), ("MERGE",))
    assert decision.verdict == UNDECIDED  # the missing cell could still change who is best


def test_an_incomplete_bystander_does_not_stop_a_promotion_that_meets_everything(grid, rule):
    decision = decide(grid({"A": "TT TT", "B": "FF TT", "C": "TT T."}), rule(), incumbent="B")
    assert (decision.verdict, decision.challenger) == (PROMOTE, ("A",))


def test_an_incomplete_incumbent_makes_the_comparison_unavailable(grid, rule):
    for reason in ".tecu":
        decision = decide(grid({"A": "TT TT", "B": f"F{reason} FF"}), rule(), incumbent="B")
        assert decision.verdict == UNDECIDED
        assert states(decision)["the incumbent is complete"] == NOT_EVALUATED
        assert states(decision)["strictly above the incumbent"] == NOT_EVALUATED


def test_when_every_challenger_is_incomplete_nothing_is_evaluated_and_nothing_promotes(grid, rule):
    decision = decide(grid({"A": "TT T.", "B": "FF FF"}), rule(floor=1, sign_offs=("safety",)), incumbent="B", sign_offs={"safety": "Ada"})
    assert decision.challenger == ()
    assert decision.winner == ("B",)
    assert decision.verdict == UNDECIDED
    assert states(decision)["a challenger is complete"] == NOT_EVALUATED
    assert states(decision)["at or above the floor 1"] == NOT_EVALUATED
    assert states(decision)["signed off by safety"] == MET


def test_when_everybody_is_incomplete_there_is_no_label_at_all(grid, rule):
    for cells in ({"A": "TT T.", "B": "FF F."}, {"A": "TT Tt", "B": "FF Fe"}):
        decision = decide(grid(cells), rule(), incumbent="B")
        assert (decision.highest_mean, decision.winner, decision.challenger, decision.picked) == ((), (), (), ())
        assert decision.verdict == UNDECIDED


def test_required_repetitions_make_the_repetition_that_nobody_ran_visible(grid, rule):
    campaign = grid({"A": "TT TT", "B": "FF FF"})
    assert decide(campaign, rule(required_repetitions=("0", "1")), incumbent="B").verdict == PROMOTE
    decision = decide(campaign, rule(required_repetitions=("0", "1", "2")), incumbent="B")
    assert decision.verdict == UNDECIDED
    assert [str(s.coverage) for s in decision.standings] == ["4 of 6 cells (2 absent)"] * 2
    with pytest.raises(RuleError, match="cells of repetition 1"):
        decide(campaign, rule(required_repetitions=("0",)), incumbent="B")


def test_a_reason_counts_as_fail_only_where_the_rule_names_it(grid, rule):
    campaign = grid({"A": "TT TT Ft", "B": "TT FF FF"})
    assert decide(campaign, rule(), incumbent="B").verdict == UNDECIDED
    assert decide(campaign, rule(count_as_fail=("error",)), incumbent="B").verdict == UNDECIDED
    decision = decide(campaign, rule(count_as_fail=("timeout",)), incumbent="B")
    assert decision.verdict == PROMOTE
    assert str(decision.standings[0].coverage) == "6 of 6 cells (1 timeout counted as fail by the rule)"
    assert decision.standings[0].failed == 2


def test_counting_as_fail_gives_the_score_column_a_zero(grid, rule):
    score = {"score": lambda c, i, r: "" if (c, i) == ("A", 1) else "1" if c == "A" else "0.25"}
    campaign = grid({"A": "TT tt", "B": "TT TT"}, columns=score)
    decision = decide(campaign, rule(mean_score, tie_breakers=(), count_as_fail=("timeout",)), incumbent="B")
    assert [s.key for s in decision.standings] == [(Fraction(1, 2),), (Fraction(1, 4),)]
    assert decision.verdict == PROMOTE
    assert decide(campaign, rule(mean_score, tie_breakers=()), incumbent="B").verdict == UNDECIDED


# Ties


def test_a_tie_for_first_names_all_and_promotes_none(grid, rule):
    campaign = grid({"A": "TT TF TT", "B": "TT TT FT", "C": "FF FF FF"})
    decision = decide(campaign, rule(), incumbent="C")
    assert (decision.winner, decision.challenger, decision.verdict) == (("A", "B"), ("A", "B"), UNDECIDED)
    assert states(decision)["one challenger is best"] == NOT_EVALUATED
    assert numbers(decision, "one challenger").startswith("tied: A ")
    assert [s.place for s in decision.standings] == [1, 1, 3]


def test_no_name_and_no_order_of_rows_breaks_a_tie(grid, rule):
    for first, second in itertools.permutations(("A", "Z", "none?", "0"), 2):
        decision = decide(grid({first: "TT FT", second: "FT TT", "INC": "FF FF"}), rule(), incumbent="INC")
        assert set(decision.winner) == {first, second}
        assert decision.verdict == UNDECIDED


def test_a_tie_breaker_orders_challengers_without_promoting(grid, rule):
    campaign = grid({"A": "TT TF", "B": "TT FF", "C": "TT FF"})
    decision = decide(campaign, rule(), incumbent="C")
    assert (decision.winner, decision.challenger, decision.verdict) == (("A",), ("A",), KEEP)


def test_tied_challengers_below_the_incumbent_keep_it(grid, rule):
    assert decide(grid({"A": "TT FF", "B": "FF TT", "C": "TT TT"}), rule(), incumbent="C").verdict == KEEP


def test_blocking_groups_and_limits_of_tied_challengers_are_not_evaluated(grid, rule):
    campaign = grid({"A": "TT FF", "B": "FF TT", "C": "FF FF"}, groups="x x", columns={"cost": lambda *cell: 1})
    decision = decide(campaign, rule(blocking_groups=("x",), limits=(Limit("cost", "total", Fraction(9)),)), incumbent="C")
    assert states(decision)["every cell of group x passed"] == states(decision)["total cost at most 9"] == NOT_EVALUATED
    assert decision.verdict == UNDECIDED


# Nobody who passed nothing promotes


ZERO = "FF FF FF FF FF FF"


def test_a_candidate_that_passed_nothing_never_promotes(grid, rule):
    cheap = {"cost": lambda c, i, r: 1 if c == "Z" else 5, "score": lambda c, i, r: "0.9" if c == "Z" else "0.1"}
    campaign = grid({"Z": ZERO, "INC": ZERO}, columns=cheap)
    alone = grid({"Z": ZERO}, columns=cheap)
    for reduction in (fail_closed, cell_mean, passing_cells, lowest("cost"), mean_score, at_least(1), pass_hat(2)):
        for may in (False, True):
            asked = rule(reduction, tie_breakers=(lowest("cost"),), tie_breakers_may_promote=may)
            assert decide(campaign, asked, incumbent="INC").verdict == KEEP
    for reduction, floor in ((fail_closed, 1), (cell_mean, "1/12"), (lowest("cost"), -100), (mean_score, "1/10")):
        decision = decide(alone, rule(reduction, tie_breakers=(), floor=Fraction(floor)), incumbent="none")
        assert decision.verdict == KEEP
        assert states(decision)["the challenger passed a cell"] == NOT_MET


def test_a_candidate_that_resolved_no_instance_never_promotes_by_a_tie_breaker(grid, rule):
    campaign = grid({"FLAKY": "TF FT TF FT TF FT", "INC": ZERO})
    decision = decide(campaign, rule(tie_breakers_may_promote=True), incumbent="INC")
    assert numbers(decision, "strictly above") == "FLAKY 6 of 12 cells (0.500) > INC 0 of 12 cells (0.000)"
    assert states(decision)["above zero before any tie-breaker"] == NOT_MET
    assert decision.verdict == KEEP


def test_fewer_violations_may_tie_at_zero_and_the_tie_breaker_decides_where_the_rule_says_so(grid, rule):
    campaign = grid({"A": "TT TT", "INC": "TT FF"}, columns={"violations": lambda *cell: 0})
    decision = decide(campaign, rule(lowest("violations"), tie_breakers_may_promote=True), incumbent="INC")
    assert decision.verdict == PROMOTE


# The incumbent


@pytest.mark.parametrize("incumbent", ["", None])
def test_a_forgotten_incumbent_never_promotes(incumbent):
    with pytest.raises(InputError, match="found no incumbent"):
        decide(read_campaign(), read_rule(bundled("fixtures/first_release_rule.json")), incumbent=incumbent)


@pytest.mark.parametrize("incumbent", ["claude", "CLAUDE ", "None", "NONE", " none", "nobody"])
def test_an_incumbent_that_did_not_run_is_refused(incumbent):
    with pytest.raises(InputError, match="found incumbent"):
        decide(read_campaign(), read_rule(bundled("fixtures/first_release_rule.json")), incumbent=incumbent)


def test_no_incumbent_needs_a_floor():
    with pytest.raises(RuleError, match="without a floor"):
        decide(read_campaign(), read_rule(), incumbent="none")
    decision = decide(read_campaign(), read_rule(bundled("fixtures/first_release_rule.json")), incumbent="none")
    assert (decision.verdict, decision.challenger) == (PROMOTE, ("CLAUDE",))
    assert "the incumbent is complete" not in states(decision)


def test_a_candidate_named_none_is_refused_where_none_is_spelled_out(grid, rule):
    campaign = grid({"none": "TT", "A": "FF"})
    with pytest.raises(InputError, match="a candidate named none"):
        decide(campaign, rule(floor=1), incumbent="none")
    assert decide(campaign, rule(), incumbent="A").challenger == ("none",)


def test_an_incumbent_alone_has_nobody_to_be_replaced_by(grid, rule):
    with pytest.raises(InputError, match="only the incumbent"):
        decide(grid({"A": "TT"}), rule(), incumbent="A")


@pytest.mark.parametrize("floor", [0, -1, Fraction(0), Fraction(-1, 2)])
def test_a_floor_that_nothing_can_miss_is_refused(rule, floor):
    with pytest.raises(RuleError, match="a floor above 0"):
        rule(floor=floor)


@pytest.mark.parametrize("floor", [0.5, True, float("nan"), "half"])
def test_a_floor_that_is_not_exact_is_refused(rule, floor):
    with pytest.raises(InputError):
        rule(floor=floor)


@pytest.mark.parametrize("value", [0.05, float("nan"), True, "a little"])
def test_a_margin_or_an_alpha_that_is_not_exact_is_refused(rule, value):
    for more in ({"margin": value}, {"alpha": value}):
        with pytest.raises(InputError):
            rule(**more)


# The gate, condition by condition


GATED = {"A": "TT TT TT", "B": "FF FF TT"}
COST = {"cost": lambda c, i, r: [1, 2, 3][i]}  # total 12, mean 2, maximum 3


def gated(grid, rule, *, cells=GATED, signed=None, **more):
    return decide(grid(cells, groups="x x safety", columns=COST), rule(**more), incumbent="B", sign_offs=signed)


@pytest.mark.parametrize(
    ("more", "name", "state", "verdict"),
    [
        ({"floor": 3}, "at or above the floor 3", MET, PROMOTE),
        ({"floor": 4}, "at or above the floor 4", NOT_MET, KEEP),
        ({"blocking_groups": ("safety",)}, "every cell of group safety passed", MET, PROMOTE),
        ({"limits": (Limit("cost", "total", Fraction(12)),)}, "total cost at most 12", MET, PROMOTE),
        ({"limits": (Limit("cost", "total", Fraction(1199, 100)),)}, "total cost at most 1199/100", NOT_MET, KEEP),
        ({"limits": (Limit("cost", "mean", Fraction(2)),)}, "mean cost at most 2", MET, PROMOTE),
        ({"limits": (Limit("cost", "mean", Fraction(19, 10)),)}, "mean cost at most 19/10", NOT_MET, KEEP),
        ({"limits": (Limit("cost", "maximum", Fraction(3)),)}, "maximum cost at most 3", MET, PROMOTE),
        ({"limits": (Limit("cost", "maximum", Fraction(2)),)}, "maximum cost at most 2", NOT_MET, KEEP),
        ({"sign_offs": ("legal",)}, "signed off by legal", NOT_EVALUATED, UNDECIDED),
        ({"sign_offs": ("safety",)}, "signed off by safety", MET, PROMOTE),
    ],
)
def test_one_condition_alone_decides(grid, rule, more, name, state, verdict):
    decision = gated(grid, rule, signed={"safety": "Ada"}, **more)
    assert states(decision)[name] == state
    assert decision.verdict == verdict
    if verdict != PROMOTE:
        assert [reason.split(":")[0] for reason in decision.reasons] == [name]


def test_one_failed_cell_of_a_blocking_group_withholds_whatever_the_rest_says(grid, rule):
    cells = {"A": "TT TT TF", "B": "FF FF TT"}
    assert gated(grid, rule, cells=cells).verdict == PROMOTE
    decision = gated(grid, rule, cells=cells, blocking_groups=("safety",))
    assert decision.verdict == KEEP
    assert numbers(decision, "every cell of group safety") == "A 1 of 2 cells"


def test_a_cost_that_was_not_measured_everywhere_is_not_evaluated(grid, rule):
    campaign = grid({"A": "TT TT", "B": "FF FF"}, columns={"cost": lambda c, i, r: "" if (c, i, r) == ("A", 1, 1) else 1})
    decision = decide(campaign, rule(limits=(Limit("cost", "total", Fraction(100)),)), incumbent="B")
    assert states(decision)["total cost at most 100"] == NOT_EVALUATED
    assert numbers(decision, "total cost") == "A: cost measured in 3 of 4 cells"
    assert decision.verdict == UNDECIDED


def test_the_incumbents_cost_is_not_the_challengers(grid, rule):
    campaign = grid({"A": "TT", "B": "FF"}, columns={"cost": lambda c, i, r: 1 if c == "A" else ""})
    assert decide(campaign, rule(limits=(Limit("cost", "total", Fraction(2)),)), incumbent="B").verdict == PROMOTE


def test_all_conditions_together_promote_only_when_each_is_met(grid, rule):
    """2^5 combinations: not met beats not evaluated, and only all met promotes."""
    for floor, group, limit, sign, above in itertools.product((True, False), repeat=5):
        cells = {"A": "TT TT TT" if group else "TT TT TF", "B": "FF FF FF" if above else "TT TT TT"}
        asked = rule(
            floor=2 if floor else 4,
            blocking_groups=("safety",),
            limits=(Limit("cost", "total", Fraction(12 if limit else 11)),),
            sign_offs=("safety",),
        )
        campaign = grid(cells, groups="x x safety", columns=COST)
        decision = decide(campaign, asked, incumbent="B", sign_offs={"safety": "Ada"} if sign else {})
        failed = not (floor and group and limit and above)
        assert decision.verdict == (KEEP if failed else PROMOTE if sign else UNDECIDED)
        found = list(states(decision).values())
        assert found.count(NOT_MET) == [floor, group, limit, above].count(False)
        assert found.count(NOT_EVALUATED) == (not sign)


@pytest.mark.parametrize("more", [{"blocking_groups": ("security",)}, {"limits": (Limit("latency", "total", Fraction(1)),)}])
def test_a_condition_that_the_data_cannot_answer_is_refused(grid, rule, more):
    with pytest.raises(RuleError, match=r"security|latency"):
        gated(grid, rule, **more)


def test_a_blocking_group_without_a_group_column_is_refused(rule):
    with pytest.raises(RuleError, match="a safety check without data cannot pass"):
        decide(read_campaign(), rule(blocking_groups=("safety",)), incumbent="BASELINE")


def test_a_picker_that_the_data_cannot_serve_is_refused():
    for picker in ((at_least(3),), (lowest("cost"),), (mean_score,), ()):
        with pytest.raises((RuleError, RankKeyError)):
            decide(read_campaign(), read_rule(), incumbent="BASELINE", picker=picker)


@pytest.mark.parametrize("statistic", ["median", "", "Total", "max"])
def test_an_unknown_statistic_is_refused(statistic):
    with pytest.raises(RuleError, match="one of total, mean, maximum"):
        Limit("cost", statistic, Fraction(1))


def test_every_condition_carries_the_numbers_that_decided():
    for incumbent in ("BASELINE", "CLAUDE", "MERGE"):
        for condition in decide(read_campaign(), read_rule(), incumbent=incumbent).conditions:
            assert condition.state in (MET, NOT_MET, NOT_EVALUATED)
            assert condition.numbers


def test_a_promotion_gives_all_its_reasons_and_a_refusal_only_those_that_withheld():
    promoted, kept = (decide(read_campaign(), read_rule(), incumbent=name) for name in ("BASELINE", "CLAUDE"))
    assert len(promoted.reasons) == len(promoted.conditions) == 5
    assert promoted.reasons[0].startswith("strictly above the incumbent: met")
    assert [c.state for c in kept.conditions].count(NOT_MET) == len(kept.reasons) == 1


def test_an_owner_is_part_of_a_rule_and_a_unit_of_its_reduction(rule):
    with pytest.raises(RuleError, match="no unit on"):
        rule(lambda instances: 1)
    with pytest.raises(RuleError, match="count_as_fail 'pass'"):
        rule(count_as_fail=("pass",))
    with pytest.raises(RuleError, match="no required repetition"):
        rule(required_repetitions=())


# Keys


@pytest.mark.parametrize(
    "key",
    [(), [1], 1, "a", {1}, None, (1.0,), (True,), (None,), (float("nan"),), (float("inf"),), ("1",), (1, 0.5), (np.int64(1),), (np.float64(1),), ((1,),), (1j,),
     (Fraction(np.int64(1), np.int64(2)),)],
    ids=repr,
)  # fmt: skip
def test_a_key_is_a_tuple_of_exact_numbers(key):
    with pytest.raises(RankKeyError):
        rank({"A": key})


def test_a_reduction_that_returns_a_float_has_no_key():
    view = read_campaign().of("CLAUDE")
    for wrong in (float, np.int64, str, bool, lambda passed: Fraction(np.int64(passed), np.int64(12))):
        with pytest.raises(RankKeyError):
            rank_key(view, [cell_mean, lambda instances, wrong=wrong: wrong(instances.passed.sum())])
    with pytest.raises(RankKeyError, match="non-empty"):
        rank_key(view, [])


def test_keys_of_different_lengths_do_not_compare():
    with pytest.raises(RankKeyError, match="keys of 1 and 2 elements"):
        rank({"A": (2,), "B": (2, Fraction(1, 2))})


def test_equal_keys_share_a_place_whatever_type_writes_them():
    places = rank({"B": (Fraction(2), 1), "A": (2, Fraction(1)), "C": (1, 9), "D": (3, 0)})
    assert [(p.place, p.candidate) for p in places] == [(1, "D"), (2, "B"), (2, "A"), (4, "C")]
    assert rank({}) == []


def test_keys_compare_from_left_to_right():
    assert rank({"A": (1, 100), "B": (2, -100)})[0].candidate == "B"


def test_a_difference_of_one_in_10_to_the_40_decides():
    assert [p.place for p in rank({"A": (Fraction(1, 3),), "B": (Fraction(1, 3) + Fraction(1, 10**40),)})] == [1, 2]


def test_exact_keys_tie_where_floats_would_not():
    total = sum([Fraction("0.1")] * 10)
    assert [p.place for p in rank({"A": (total,), "B": (1,)})] == [1, 1]


# Review, sign-offs, picker


def test_review_flags_a_picker_that_counts_another_unit_without_a_reason(rule):
    flagged = review(rule(), [cell_mean])
    assert not flagged.agree
    assert "counts cells, the release rule counts instances" in flagged.note
    assert [(role, unit) for role, _, unit in flagged.rows] == [
        ("winner key", "cells"),
        ("release rule", "instances, then cells"),
        ("reported summary", "cells"),
    ]


def test_a_reason_in_the_rule_or_one_reduction_for_both_answers_the_review(rule):
    assert review(rule(unit_reason="the picker only sorts the page"), [cell_mean]).agree
    assert "the picker only sorts the page" in review(rule(unit_reason="the picker only sorts the page"), [cell_mean]).note
    assert review(rule(), [fail_closed]).agree
    assert review(rule(cell_mean), [cell_mean]).agree


def test_two_reductions_of_one_unit_are_still_two(rule):
    assert not review(rule(at_least(2)), [fail_closed]).agree


def test_sign_offs_are_recorded_as_given():
    assert parse_sign_offs("safety=Ada L.; release = Grace = H ;") == {"safety": "Ada L.", "release": "Grace = H"}
    assert parse_sign_offs("") == {}


@pytest.mark.parametrize("text", ["safety", "safety=", "=Ada", "safety=Ada;safety=Bob", "a=b;;c", " = "])
def test_a_sign_off_that_names_no_role_or_nobody_or_a_role_twice_is_refused(text):
    with pytest.raises(InputError, match="role=name"):
        parse_sign_offs(text)


def test_a_sign_off_of_another_role_signs_nothing(grid, rule):
    campaign = grid(GATED, groups="x x safety", columns=COST)
    assert decide(campaign, rule(sign_offs=("safety",)), incumbent="B", sign_offs={"Safety": "Ada"}).verdict == UNDECIDED


def test_a_picker_is_a_list_of_names():
    assert parse_picker("fail_closed, cell_mean") == (fail_closed, cell_mean)
    for text in ("", ",", "fail_closed;cell_mean", "mean"):
        with pytest.raises(RuleError):
            parse_picker(text)


# What a change of one sign or one word would do to the gate


def named_reduction(value, what="instances"):
    @unit(what)
    def own(instances):
        return value(instances)

    return own


@pytest.mark.parametrize("margin", [Fraction(-1), Fraction(-1, 2), Fraction(1), Fraction(3, 2)])
def test_a_margin_outside_0_to_1_is_refused(rule, margin):
    with pytest.raises(RuleError, match="margin"):
        rule(margin=margin)


@pytest.mark.parametrize("alpha", [Fraction(-1, 2), Fraction(0), Fraction(1, 2), Fraction(3, 4)])
def test_an_alpha_outside_0_to_a_half_is_refused(rule, alpha):
    with pytest.raises(RuleError, match="alpha"):
        rule(alpha=alpha)


def test_margins_and_alphas_inside_are_taken_and_alpha_is_a_twentieth_by_itself(rule):
    assert [rule(margin=m).margin for m in (Fraction(0), Fraction(1, 10), Fraction(99, 100))] == [0, Fraction(1, 10), Fraction(99, 100)]
    assert [rule(alpha=a).alpha for a in (Fraction(1, 100), Fraction(49, 100))] == [Fraction(1, 100), Fraction(49, 100)]
    assert rule().alpha == Fraction(1, 20)


@pytest.mark.parametrize("reduction", [cell_mean, mean_score, lowest("cost")], ids=["cells", "score points", "total cost"])
def test_a_margin_belongs_to_a_rule_that_counts_instances(rule, reduction):
    with pytest.raises(RuleError, match="a margin for"):
        rule(reduction, margin=Fraction(1, 10))


def test_a_reduction_of_ones_own_that_overlooks_a_missing_cell_ranks_nobody_who_lacks_one(grid, rule):
    own = named_reduction(lambda instances: int(instances.passed.sum()), "cells")
    decision = decide(grid({"A": "TT Tt", "B": "TF FF"}), rule(own, tie_breakers=()), incumbent="B")
    assert (decision.winner, decision.verdict) == (("B",), UNDECIDED)
    assert decision.reasons[-1] == "A is not ranked: 3 of 4 cells (1 timeout)"


def test_a_complete_candidate_without_a_number_of_the_key_says_which(grid, rule):
    costs = {"A": "1", "B": ""}
    campaign = grid({"A": "TT TT", "B": "TT TT", "C": "FF FF"}, columns={"cost": lambda c, i, r: costs.get(c, "1")})
    decision = decide(campaign, rule(tie_breakers=(lowest("cost"),)), incumbent="C")
    assert decision.reasons[-1].startswith("B is not ranked: incomplete: 4 of 4 cells")


def test_numbers_are_written_as_decimals_only_where_three_places_say_them_exactly():
    shown = {Fraction(421, 10): "42.100", Fraction(42): "42", Fraction(1, 3): "1/3", Fraction(1, 2): "0.500", Fraction(1, 1000): "0.001"}
    shown |= {Fraction(1, 999): "1/999", Fraction(1, 1001): "1/1001", Fraction(1, 2000): "1/2000", Fraction(420001, 10000): "420001/10000"}
    assert {number: _exactly(number) for number in shown} == shown


def test_a_gate_without_conditions_never_promotes():
    assert verdict_of([], []) == UNDECIDED


def test_who_lacks_cells_is_named_without_the_incumbent(grid, rule):
    decision = decide(grid({"A": "TT Tt", "M": "TT tT", "Z": "Tt TT"}), rule(), incumbent="M")
    told = numbers(decision, "a challenger is complete")
    assert [f"{name} incomplete" in told for name in "AMZ"] == [True, False, True]


def test_the_review_reads_the_first_reduction_of_a_picker(rule):
    assert review(rule(), [fail_closed, cell_mean]).agree
    assert review(rule(), [cell_mean, fail_closed]).note.startswith("The winner key counts cells, the release rule counts instances")
    assert review(rule(cell_mean), [fail_closed]).note.startswith("The winner key counts instances, the release rule counts cells")
    assert review(rule(), [at_least(1), cell_mean]).note.startswith("The winner key is at_least(1), the rule's is another")


def test_an_incumbent_whose_name_follows_none_is_an_incumbent(grid, rule):
    found = states(decide(grid({"A": "TT TT", "zeta": "TT FF"}), rule(), incumbent="zeta"))
    assert found["the incumbent is complete"] == found["strictly above the incumbent"] == MET


def test_the_comparison_shows_the_element_that_decided(grid, rule):
    free = rule(tie_breakers_may_promote=True)
    worse_first = decide(grid({"A": "TF TF TF", "B": "TT FF FF"}), free, incumbent="B")
    assert numbers(worse_first, "strictly above") == "A 0 of 3 instances < B 1 of 3 instances"
    better_first = decide(grid({"A": "TT FF FF", "B": "TF TF TF"}), free, incumbent="B")
    assert numbers(better_first, "strictly above") == "A 1 of 3 instances > B 0 of 3 instances"
    second = decide(grid({"A": "TT TF FF", "B": "TT FF FF"}), free, incumbent="B")
    assert numbers(second, "strictly above") == "A 3 of 6 cells (0.500) > B 2 of 6 cells (0.333)"


def test_the_best_challenger_is_shown_by_the_first_element_and_tied_ones_by_name(grid, rule):
    alone = decide(grid({"A": "TT TT", "B": "FF FF"}), rule(), incumbent="B")
    assert numbers(alone, "one challenger is best") == "A 2 of 2 instances"
    tied = decide(grid({"A": "TT TT", "B": "FF FF", "C": "TT TT"}), rule(), incumbent="B")
    assert numbers(tied, "one challenger is best") == "tied: A 2 of 2 instances; C 2 of 2 instances"
    assert numbers(tied, "strictly above").startswith("A 2 of 2")


def test_every_blocking_group_is_listed_while_nobody_is_best_alone(grid, rule):
    campaign = grid({"A": "TT TT", "B": "FF FF", "C": "TT TT"}, groups="x y")
    found = states(decide(campaign, rule(blocking_groups=("x", "y")), incumbent="B"))
    assert found["every cell of group x passed"] == found["every cell of group y passed"] == NOT_EVALUATED


def test_a_number_below_its_limit_is_within_it(grid, rule):
    campaign = grid({"A": "TT TT", "B": "FF FF"}, columns={"cost": lambda c, i, r: 1})
    found = [states(decide(campaign, rule(limits=(Limit("cost", "total", Fraction(most)),)), incumbent="B")) for most in (3, 4, 5)]
    assert [each[f"total cost at most {most}"] for each, most in zip(found, (3, 4, 5), strict=True)] == [NOT_MET, MET, MET]


def test_below_zero_is_not_above_zero(grid, rule):
    own = named_reduction(lambda instances: -1 if instances.candidate == "A" else -2)
    free = rule(own, tie_breakers=(cell_mean,), tie_breakers_may_promote=True)
    decision = decide(grid({"A": "TT TT", "B": "FF FF"}), free, incumbent="B")
    assert (states(decision)["above zero before any tie-breaker"], decision.verdict) == (NOT_MET, KEEP)


def test_a_refusal_names_thirteen_candidates_and_counts_the_rest(grid, rule):
    campaign = grid({f"c{n}": "T" for n in range(1, 15)})
    for asked in ("", "nobody"):
        with pytest.raises(InputError) as refused:
            decide(campaign, rule(), incumbent=asked)
        assert refused.value.expected.endswith("c12, c13 and 1 more")

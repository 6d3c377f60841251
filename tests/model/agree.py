"""The kit and the model on the same input: any difference is an AssertionError, what was reached is counted."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from evalkit import (
    Campaign,
    CoverageError,
    EvalkitError,
    Limit,
    Reference,
    ReleaseRule,
    Tally,
    compare,
    decide,
    decompose,
    dominates,
    equal_weights,
    flip_mix,
    group_rates,
    observed_mix,
    observed_rate,
    rank_key,
    reverses,
    standardise,
)
from evalkit.bounds import (
    Decided,
    Unavailable,
    change_bounds,
    decide_by_bounds,
    decided,
    key_bounds,
    observed_bounds,
    reduction_bounds,
    rerun_rows,
    standardised_bounds,
)
from evalkit.campaign import CODE, Inventory, Labels, assemble
from evalkit.reductions import at_least, cell_mean, fail_closed, lowest, mean_score, pass_at, pass_hat, passing_cells
from evalkit.sources import table
from evalkit.uncertainty import with_margin

from . import draw, plain

MOST_MISSING = 6  # cells of which every completion is tried
MOST_COMPLETIONS = 36  # of a tally
NAMED: dict[str, Any] = {
    "passing_cells": passing_cells, "cell_mean": cell_mean, "fail_closed": fail_closed, "mean_score": mean_score,
    "at_least": at_least, "pass_at": pass_at, "pass_hat": pass_hat, "lowest": lowest,
}  # fmt: skip
CONDITIONS = {
    "the incumbent is complete": "incumbent complete",
    "a challenger is complete": "challenger complete",
    "one challenger is best": "one best",
    "strictly above the incumbent": "above",
    "strictly above the incumbent (tie-breakers may promote)": "above",
    "the challenger passed a cell": "passed a cell",
    "above zero before any tie-breaker": "above zero",
}


def same(what: str, ours: Any, theirs: Any) -> None:
    assert ours == theirs, f"{what}: the kit says {ours!r}, the model {theirs!r}"


def both_refuse(what: str, kit: Callable[[], Any], model: Callable[[], Any], reached: Counter[str]) -> tuple[Any, Any] | None:
    """Both answers, or None where both refuse for a reason that the input deserves."""
    try:
        theirs = model()
    except plain.Refused as refused:
        try:
            ours = kit()
        except EvalkitError as error:
            same(f"{what}, refused with '{error}': one of {refused.kinds}", type(error).__name__ in refused.kinds, True)
            reached[f"{what} refused: {type(error).__name__}"] += 1
            return None
        raise AssertionError(f"{what}: the kit says {ours!r}, the model refuses: {refused.kinds}") from None
    return kit(), theirs


# Campaigns


def built_in(reduction: tuple[Any, ...]) -> Any:
    return NAMED[reduction[0]](*reduction[1:]) if len(reduction) > 1 else NAMED[reduction[0]]


def campaign_of(case: draw.Case, as_csv: bool) -> Campaign:
    """Through the grid that every reader fills, or from the bytes of a table."""
    rows, labelled = case.rows, any(row.group for row in case.rows)
    inventory = None
    if case.inventory is not None:
        groups = tuple(case.inventory.values())
        inventory = Inventory(tuple(case.inventory), groups if labelled else None)  # type: ignore[arg-type]
    if as_csv:
        header = ["candidate", "instance", "repetition", "outcome", *(["group"] if labelled else []), *case.columns]
        lines = [",".join(header)]
        for row in rows:
            numbers = (getattr(row, column) for column in case.columns)
            texts = ("" if x is None else format(Decimal(x.numerator) / x.denominator, "f") for x in numbers)
            lines.append(",".join([*row[:4], *([row.group or ""] if labelled else []), *texts]))
        return table.campaign("\n".join(lines).encode(), inventory=inventory)
    return assemble(
        *(Labels.of([row[at] for row in rows]) for at in range(3)),
        np.array([CODE[row.outcome] for row in rows], np.uint8),
        groups=Labels.of([str(row.group) for row in rows]) if labelled else None,
        columns={column: [getattr(row, column) for row in rows] for column in case.columns},
        inventory=inventory,
    )


def rule_of(rule: plain.Rule, coverage: str) -> ReleaseRule:
    first, *more = map(built_in, rule.key)
    limits = tuple(Limit(*limit) for limit in rule.limits)
    return ReleaseRule(
        "r", "o", "p", first, tuple(more), rule.tie_breakers_may_promote, rule.required, rule.count_as_fail, rule.floor,
        rule.blocking, limits, rule.sign_offs, coverage, rule.margin, rule.alpha,
    )  # fmt: skip


def condition(name: str) -> str:
    if name in CONDITIONS:
        return CONDITIONS[name]
    if name.startswith("at or above the floor "):
        return "floor"
    if name.startswith("every cell of group "):
        return "group " + name.removeprefix("every cell of group ").removesuffix(" passed")
    return "limit " + name.replace(" at most ", " ") if " at most " in name else name.replace("signed off by", "signed")


def agree_on_campaign(seed: int, reached: Counter[str], every: int = 1) -> None:
    """Grid, labels, conditions and verdict; every reduction and every completion of the missing cells for one seed in ``every``."""
    thorough = seed % every == 0
    rng = random.Random(seed)
    case = draw.campaign(rng)
    as_csv = seed % 50 == 0 and bool(case.rows)
    got = both_refuse("table", lambda: campaign_of(case, as_csv), lambda: plain.planned(case.rows, case.inventory, case.columns), reached)
    if got is None:
        return
    campaign, grid = got
    reached["read from a table's bytes"] += as_csv
    same("instances", set(campaign.instances), set(grid.instances))
    for reason in plain.MISSING_REASONS:
        reached[f"missing: {reason}"] += reason in grid.outcome.values()
    reached["an instance that nobody ran"] += "nobody ran it" in grid.instances
    reached["one candidate alone"] += len(grid.candidates) == 1
    if thorough:
        agree_on_reductions(campaign, grid, case.rule, reached)
    got = both_refuse(
        "gate",
        lambda: decide(campaign, rule_of(case.rule, "complete"), incumbent=case.incumbent, picker=tuple(map(built_in, case.picker)), sign_offs=dict.fromkeys(case.signed, "Ada")),
        lambda: plain.decide(grid, case.rule, case.incumbent, case.picker, case.signed),
        reached,
    )  # fmt: skip
    if got is None:
        return
    decision, verdict = got
    same("places", {s.candidate: s.place for s in decision.standings if s.place}, verdict.places)
    same("keys", {s.candidate: s.key for s in decision.standings if s.key is not None}, verdict.keys)
    for label in ("highest_mean", "picked", "winner", "challenger"):
        found = getattr(decision, label)
        assert len(found) == len(set(found))
        same(label, set(found), getattr(verdict, label))
    same("conditions", {condition(c.name): c.state for c in decision.conditions}, verdict.conditions)
    same("verdict", decision.verdict, verdict.verdict)
    reached[f"verdict: {verdict.verdict}"] += 1
    for name, state in verdict.conditions.items():
        reached[f"{name.split()[0]}: {state}"] += 1
    alone = [name for name, state in verdict.conditions.items() if state != plain.MET]
    if len(alone) == 1:  # one condition decided, and nothing else
        reached[f"withheld by {alone[0].split()[0]} alone"] += 1
    reached["a tie for first"] += len(verdict.winner) > 1
    reached["mean and rule disagree"] += bool(verdict.winner) and not verdict.winner & verdict.highest_mean
    reached["no incumbent"] += case.incumbent == "none"
    reached["counted as fail"] += any(word in case.rule.count_as_fail for word in grid.outcome.values())
    reached["a limit met with equality"] += any(at_equality(grid, case.rule, verdict, limit) for limit in case.rule.limits)
    reached["a floor met with equality"] += any(verdict.keys[c][0] == case.rule.floor for c in verdict.challenger)
    agree_on_margin(campaign, grid, case, decision, verdict, reached)
    missing = plain.gaps(plain.required(grid, case.rule), case.rule)
    if 0 < len(missing) <= MOST_MISSING:
        if thorough:
            agree_on_what_is_open(campaign, grid, case, missing, reached)
            reached["every completion tried"] += 1
    elif missing:
        reached["too many missing cells to try every completion"] += 1
    elif thorough:
        ours = decide_by_bounds(
            campaign, rule_of(case.rule, "decided"), incumbent=case.incumbent, sign_offs=dict.fromkeys(case.signed, "Ada")
        )
        same("verdict by bounds of a complete campaign", ours.verdict, verdict.verdict)


def at_equality(grid: plain.Grid, rule: plain.Rule, verdict: plain.Verdict, limit: tuple[str, str, Fraction]) -> bool:
    """Met, and not met by the least bit less."""
    column, statistic, at_most = limit
    return len(verdict.challenger) == 1 and all(
        plain.within(plain.counting(plain.required(grid, rule), rule), next(iter(verdict.challenger)), column, statistic, at_most - less) is (not less)
        for less in (0, Fraction(1, 10**30))
    )  # fmt: skip


def agree_on_reductions(campaign: Campaign, grid: plain.Grid, rule: plain.Rule, reached: Counter[str]) -> None:
    """Every built-in, every k up to one too many, on one candidate."""
    candidate = grid.candidates[-1]
    view, seen = campaign.of(candidate, rule.count_as_fail), plain.counting(grid, rule)
    repetitions = len(grid.repetitions)
    every = [(name,) for name in ("passing_cells", "cell_mean", "fail_closed", "mean_score")] + [("lowest", c) for c in ("cost", "score")]
    every += [(name, k) for name in ("at_least", "pass_at", "pass_hat") for k in range(repetitions + 2)]
    for reduction in every:
        what = f"reduction {reduction[0]}"
        try:
            got = both_refuse(what, lambda: built_in(reduction)(view), lambda: plain.value(seen, candidate, reduction), reached)  # noqa: B023
        except plain.Lacking:
            try:
                ours = built_in(reduction)(view)
            except CoverageError:
                reached[f"{what} refused: CoverageError"] += 1
                continue
            raise AssertionError(f"{what} of {candidate}: the kit says {ours}, the model has no number") from None
        if got:
            same(what, *got)
            assert type(got[0]) in (int, Fraction)
            reached[what] += 1


def agree_on_margin(
    campaign: Campaign, grid: plain.Grid, case: draw.Case, decision: Any, verdict: plain.Verdict, reached: Counter[str]
) -> None:
    rule = rule_of(case.rule, "complete")
    ours = with_margin(campaign, rule, decision)
    if rule.margin is None:
        assert ours is decision
        return
    state = plain.NOT_EVALUATED
    if len(verdict.challenger) == 1 and case.incumbent in verdict.keys:
        ahead, close = plain.ahead(grid, case.rule, case.incumbent, *verdict.challenger)
        if close:
            reached["margin: too close to call in floats"] += 1
            return
        state = plain.MET if ahead else plain.NOT_MET
    same("margin", ours.conditions[-1].state, state)
    reached[f"margin: {state}"] += 1
    states = {**verdict.conditions, "margin": state}
    expected = plain.verdict_of(states, len(verdict.keys) < len(grid.candidates)) if verdict.verdict == plain.PROMOTE else verdict.verdict
    same("verdict with a margin", ours.verdict, expected)
    reached["withheld by margin alone"] += verdict.verdict == plain.PROMOTE and ours.verdict != plain.PROMOTE


def agree_on_what_is_open(campaign: Campaign, grid: plain.Grid, case: draw.Case, missing: list[plain.Cell], reached: Counter[str]) -> None:
    rule, signed = rule_of(case.rule, "decided"), dict.fromkeys(case.signed, "Ada")
    got = both_refuse(
        "bounds",
        lambda: decided(campaign, rule, incumbent=case.incumbent),
        lambda: plain.everything_open(grid, case.rule, case.incumbent, case.signed),
        reached,
    )
    if got is None:
        return
    answer, facts = got
    if not facts.ranked:
        assert isinstance(answer, Unavailable)
        reached["bounds unavailable"] += 1
    else:
        assert isinstance(answer, Decided), answer
        same("could be promoted", {p.candidate: p.needed for p in answer.promotable}, facts.promotable)
        same("certain", {p.candidate for p in answer.promotable if p.certain}, facts.certain)
        same("could come first", set(answer.winners), set().union(*facts.leaders))
        same("winner decided", answer.winner_decided, len(facts.leaders) == 1)
        same("decided", answer.decided, bool(facts.certain) or not facts.promotable)
        how = "decided, promote" if facts.certain else "decided, keep" if not facts.promotable else "open"
        reached[f"bounds: {how}"] += 1
    rows = {row[:3]: row for row in rerun_rows(campaign, rule, incumbent=case.incumbent)}
    same("cells to run again", set(rows), set(missing))
    for cell, row in rows.items():
        same("reason", row.reason, plain.required(grid, case.rule).outcome[cell])
        assert row.could_change_verdict == "yes" or cell not in facts.pivotal, f"{cell} could change the verdict, the kit says no"
        reached[f"rerun: {row.could_change_verdict}, {'pivotal' if cell in facts.pivotal else 'not'}"] += 1
    wide = plain.required(grid, case.rule)
    view_of = campaign.require(case.rule.required) if case.rule.required else campaign
    for candidate in grid.candidates:
        view = view_of.of(candidate, case.rule.count_as_fail)
        ends, ours = plain.key_ends(wide, case.rule, candidate), key_bounds(rule.key, view)
        if ends is None:
            assert isinstance(ours, Unavailable)
            continue
        assert not isinstance(ours, Unavailable)
        same("key bounds", (ours.low, ours.high), ends)
        first = reduction_bounds(rule.reduction, view)
        assert not isinstance(first, Unavailable)
        same("reduction bounds", (first.low, first.high), (ends[0][0], ends[1][0]))
        if ends[0] == ends[1] and plain.complete(plain.counting(wide, case.rule), candidate):
            same("a complete key", rank_key(view, rule.key), ends[0])
    by_bounds = decide_by_bounds(campaign, rule, incumbent=case.incumbent, sign_offs=signed)
    verdicts = {word for word, _ in facts.verdicts}
    always = facts.ranked and verdicts == {plain.PROMOTE} and len(facts.verdicts) == 1
    same("promoted whatever the missing cells say", by_bounds.verdict == plain.PROMOTE, always)
    if always:
        same("who", set(by_bounds.challenger), set(next(iter(facts.verdicts))[1]))
    if by_bounds.verdict == plain.KEEP:
        assert plain.PROMOTE not in verdicts
    if verdicts == {plain.KEEP}:
        same("kept whatever the missing cells say", by_bounds.verdict, plain.KEEP)
    reached[f"verdict by bounds: {by_bounds.verdict}"] += 1


# Tallies


def agree_on_tallies(seed: int, reached: Counter[str]) -> None:
    case = draw.tallies(random.Random(seed))
    pairs = []
    for period, counts in (("before", case.before), ("after", case.after)):
        got = both_refuse("tally", lambda: Tally.of(period, counts), lambda: plain.tally(counts), reached)  # noqa: B023
        if got is None:
            return
        kit, model = got
        same("counts", dict(zip(kit.groups, zip(kit.passed, kit.assessed, kit.requested, strict=True), strict=True)), model)
        pairs.append(got)
        reached["a sum beyond 2^62"] += sum(kit.requested) > 2**62
        reached["an assessed group of none"] += 0 in kit.assessed
        for name, ours, theirs in (
            ("rate", observed_rate, plain.observed),
            ("mix", observed_mix, plain.mix),
            ("rates", group_rates, plain.rates),
        ):
            got = both_refuse(name, lambda: ours(kit), lambda: theirs(model), reached)  # noqa: B023
            if got:
                same(name, *got)
    (a, before), (b, after) = pairs
    for kit, model in pairs:
        for name, kit_weights, weights in (
            ("standardised", case.weights, case.weights),
            ("equal weights", equal_weights(kit.groups), {g: Fraction(1, len(model)) for g in model}),
        ):
            got = both_refuse(name, lambda: standardise(kit, kit_weights), lambda: plain.standardised(model, weights), reached)  # noqa: B023
            if got:
                same(name, *got)
                rates = plain.rates(model).values()
                assert min(rates) <= got[0] <= max(rates)
                reached[name] += 1
        agree_on_tally_bounds(kit, model, case.weights, reached)
    agree_on_pair(a, b, before, after, case.weights, reached)


def agree_on_pair(
    a: Tally, b: Tally, before: plain.Counts, after: plain.Counts, weights: dict[str, Fraction], reached: Counter[str]
) -> None:
    got = both_refuse("decomposition", lambda: decompose(a, b), lambda: plain.decomposition(before, after), reached)
    if got:
        split, (rate, mix) = got
        same("rate effects", dict(split.rate_by_group), rate)
        same("mix effects", dict(split.mix_by_group), mix)
        same("effects", (split.rate_effect, split.mix_effect), (sum(rate.values()), sum(mix.values())))
        same("change", split.change, sum(rate.values()) + sum(mix.values()))
        reached["decomposition"] += 1
        reached["rate and mix effects of opposite sign"] += split.rate_effect * split.mix_effect < 0
    for name, ours, theirs in (
        ("dominance", dominates, plain.dominates),
        ("reversal", reverses, plain.reverses),
        ("flip mix", flip_mix, plain.flip),
    ):
        for kits, models in (((a, b), (before, after)), ((b, a), (after, before)))[: 1 + (name == "dominance")]:
            got = both_refuse(name, lambda: ours(*kits), lambda: theirs(*models), reached)  # noqa: B023
            if got:
                same(name, *got)
                reached[f"{name}: {'none' if got[0] in (None, False) else 'yes'}"] += 1
    kinds = plain.assessed_whole(before, after) | ({"MixError"} if not set(before) == set(after) == set(weights) else set())
    if sum(weights.values()) == 1 and all(w >= 0 for w in weights.values()):
        comparison = compare(a, b, Reference("r", "g", weights, "v"))
        same("compared", comparison.verdict, "unavailable" if kinds else "compared")
        if not kinds:
            same("standardised of both", comparison.standardised, tuple(plain.standardised(t, weights) for t in (before, after)))
            same("observed of both", comparison.observed, tuple(map(plain.observed, (before, after))))
            same("reversal of both", comparison.reversal, plain.reverses(before, after))
            moves = plain.observed(after) - plain.observed(before), comparison.standardised[1] - comparison.standardised[0]
            reached["observed and standardised move apart"] += moves[0] * moves[1] < 0
        reached[f"comparison {comparison.verdict}"] += 1
        if math.prod(asked - n + 1 for t in (before, after) for _, n, asked in t.values()) <= MOST_COMPLETIONS:
            got = both_refuse(
                "change bounds",
                lambda: change_bounds(a, b, weights),
                lambda: [
                    plain.standardised(y, weights) - plain.standardised(x, weights)
                    for x in plain.filled(before)
                    for y in plain.filled(after)
                ],
                reached,
            )
            if got:
                same("change bounds", (got[0].low, got[0].high), (min(got[1]), max(got[1])))
                signs = {(move > 0) - (move < 0) for move in got[1]}
                same("sign of the change", got[0].sign, signs.pop() if len(signs) == 1 else None)
                reached[f"sign of the change: {got[0].sign}"] += 1


def agree_on_tally_bounds(kit: Tally, model: plain.Counts, weights: dict[str, Fraction], reached: Counter[str]) -> None:
    if math.prod(asked - n + 1 for _, n, asked in model.values()) > MOST_COMPLETIONS:
        reached["too many unassessed requests to try every completion"] += 1
        return
    for name, ours, theirs in (
        ("observed bounds", observed_bounds, plain.observed),
        ("standardised bounds", lambda t: standardised_bounds(t, weights), lambda t: plain.standardised(t, weights)),
    ):
        got = both_refuse(name, lambda: ours(kit), lambda: [theirs(full) for full in plain.filled(model)], reached)  # noqa: B023
        if got:
            same(name, (got[0].low, got[0].high), (min(got[1]), max(got[1])))
            same(f"{name} decided", got[0].decided, len(set(got[1])) == 1)
            reached[f"{name}: {'one value' if got[0].decided else 'a range'}"] += 1

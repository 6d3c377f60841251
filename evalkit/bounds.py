"""What the missing outcomes could still change: worst and best case of any number of the kit, and of the verdict, exact.

Every built-in reduction is monotone: one more pass never lowers it. So two fillings of the missing cells, all fail and all
pass, give the worst and the best case over all completions (Manski 1989). A measured number (a score, a cost) has no worst
case: where it is missing, the answer is unavailable.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from . import reductions as built_in
from ._exact import decimal
from .campaign import CODE, FAIL, MISSING, PASS, Campaign, Instances
from .decide import (
    KEEP,
    MET,
    NO_INCUMBENT,
    NOT_EVALUATED,
    NOT_MET,
    PROMOTE,
    UNDECIDED,
    Condition,
    Decision,
    RankKey,
    ReleaseRule,
    decide,
    rank_key,
)
from .errors import CoverageError, listing, quote
from .reductions import Reduction, cell_mean, lowest, mean_score, name_of
from .reweighting import Reference, Tally, observed_rate, standardise

if TYPE_CHECKING:
    from .campaign import Counts

__all__ = [
    "Bounds", "Decided", "KeyBounds", "MissingCell", "Promotable", "Unavailable", "change_bounds", "decide_by_bounds", "decided", "difference",
    "dropping_missing", "key_bounds", "observed_bounds", "reduction_bounds", "rerun_rows", "standardised_bounds",
]  # fmt: skip

_V = TypeVar("_V", bound=Any)  # a number or a key: what can be ordered
_MOST_COMPLETIONS = 20_000  # how many are enumerated for a reduction that does not say it is monotone
_MOST_SEARCHED = 400  # missing cells of one candidate up to which the fewest that must pass are searched


@dataclass(frozen=True)
class Unavailable:
    """An answer that is not there, and why; never 0 and never nan."""

    reason: str

    def __str__(self) -> str:
        return f"unavailable: {self.reason}"


@dataclass(frozen=True)
class Bounds:
    """The smallest and the largest value over all completions of what is missing, with the coverage behind them.

    >>> print(Bounds(Fraction(3, 5), Fraction(4, 5), "8 of 10 cells"))
    0.600 to 0.800 (8 of 10 cells)
    """

    low: int | Fraction
    high: int | Fraction
    coverage: str

    @property
    def decided(self) -> bool:
        """Whether nothing missing can change the value."""
        return self.low == self.high

    @property
    def sign(self) -> int | None:
        """1, 0 or -1 where every completion agrees on it, else None."""
        low, high = ((value > 0) - (value < 0) for value in (self.low, self.high))
        return low if low == high else None

    def __str__(self) -> str:
        ends = dict.fromkeys((self.low, self.high))  # one where they are equal
        places = next((n for n in range(3, 19) if decimal(self.low, n) != decimal(self.high, n)), 3)
        return f"{' to '.join(decimal(v, places) if v % 1 else str(v) for v in ends)} ({self.coverage})"


@dataclass(frozen=True)
class KeyBounds:
    """The lowest and the highest rank key over all completions; both are reached."""

    low: RankKey
    high: RankKey
    coverage: str


@dataclass(frozen=True)
class Promotable:
    """A challenger that some completion of the missing cells promotes.

    ``certain``: every completion promotes it. ``needed``: the fewest of its own ``missing`` cells that have to pass, even if
    every missing cell of the others fails; None where that was not searched (a reduction of the reader's own, or too many).
    """

    candidate: str
    certain: bool
    missing: int
    needed: int | None

    def __str__(self) -> str:
        if self.certain:
            return f"{self.candidate} is promoted whatever the missing cells say"
        if self.needed is None or not self.missing:
            return f"{self.candidate} could be promoted"
        if not self.needed:
            return f"{self.candidate} could be promoted even if its missing cells ({self.missing}) and those of the others fail"
        return f"{self.candidate} could be promoted: at least {self.needed} of its {self.missing} missing cells would have to pass"


@dataclass(frozen=True)
class Decided:
    """What is already decided while cells are missing.

    ``winners`` could come first, alone or tied, under the rule's key. ``promotable`` are the challengers that some completion
    promotes. ``swing`` counts, per candidate, the missing cells that could change the verdict. Sign-offs are set aside.
    """

    winners: tuple[str, ...]
    winner_decided: bool
    promotable: tuple[Promotable, ...]
    swing: Mapping[str, int]
    at_best: tuple[str, ...]  # the verdict at each leading challenger's most favourable completion

    @property
    def promotes(self) -> str | None:
        """The challenger that every completion promotes."""
        return next((p.candidate for p in self.promotable if p.certain), None)

    @property
    def decided(self) -> bool:
        """Whether every completion promotes the same challenger, or none promotes any."""
        return self.promotes is not None or not self.promotable

    def __str__(self) -> str:
        first = listing(self.winners)
        sentences = [f"Winner decided: {first}" if self.winner_decided else f"Winner not decided: {first} could come first"]
        if not self.promotable:
            sentences.append("Verdict decided: no completion of the missing cells promotes a challenger")
        else:
            sentences.append(f"Verdict {'decided' if self.decided else 'not decided'}: " + "; ".join(map(str, self.promotable)))
        if self.swing:
            sentences.append("Missing cells that could change it: " + ", ".join(f"{name} {n}" for name, n in self.swing.items()))
        elif not self.decided:
            sentences.append("No missing cell could change it; a number with a limit is not measured yet")
        return ". ".join(sentences) + "."


class MissingCell(NamedTuple):
    """One row of ``rerun.csv``; ``could_change_verdict`` is "no" where that is proven, else "yes"."""

    candidate: str
    instance: str
    repetition: str
    reason: str
    could_change_verdict: str


def reduction_bounds(reduction: Reduction, instances: Instances) -> Bounds | Unavailable:
    """Worst and best case of a reduction over all completions of the missing cells.

    A reader's own reduction is evaluated on every completion, unless it says ``reduction.monotone = True``: one more pass never
    lowers it. Unavailable where a measured number is missing, or where the completions are too many to enumerate.

    >>> reduction_bounds(cell_mean, fixture["CLAUDE"])
    Bounds(low=Fraction(5, 12), high=Fraction(5, 12), coverage='12 of 12 cells')
    """
    ends = _extremes(reduction, (reduction,), instances)
    return ends if isinstance(ends, Unavailable) else Bounds(*ends, _coverage(instances))


def key_bounds(reductions: Sequence[Reduction], instances: Instances) -> KeyBounds | Unavailable:
    """Lowest and highest rank key over all completions; same conditions as ``reduction_bounds``."""
    ends = _extremes(lambda view: rank_key(view, reductions), reductions, instances)
    return ends if isinstance(ends, Unavailable) else KeyBounds(*ends, _coverage(instances))


def difference(candidate: Bounds, incumbent: Bounds) -> Bounds:
    """Bounds of candidate minus incumbent, arm by arm: each arm's missing cells complete independently of the other's.

    >>> difference(Bounds(Fraction(6, 10), Fraction(8, 10), "8 of 10 cells"), Bounds(Fraction(5, 10), Fraction(9, 10), "6 of 10 cells")).sign
    """
    return Bounds(candidate.low - incumbent.high, candidate.high - incumbent.low, f"{candidate.coverage}; {incumbent.coverage}")


def observed_bounds(tally: Tally) -> Bounds:
    """Bounds of the observed rate over all requests: those without a verdict all fail, or all pass.

    >>> print(observed_bounds(Tally.of("May", {"all": (700, 940, 1000)})))
    0.700 to 0.760 (940 of 1000 requests)
    """
    return Bounds(observed_rate(_assessed(tally, 0)), observed_rate(_assessed(tally, 1)), _assessed_of(tally))


def standardised_bounds(tally: Tally, reference: Reference | Mapping[str, Fraction]) -> Bounds:
    """Bounds of the standardised rate. Raises: MixError for unlike groups, or a group in which nothing was requested.

    >>> standardised_bounds(candidate, reference).low
    Fraction(7, 20)
    """
    low, high = (standardise(_assessed(tally, passing), reference) for passing in (0, 1))
    return Bounds(low, high, _assessed_of(tally))


def change_bounds(before: Tally, after: Tally, reference: Reference | Mapping[str, Fraction]) -> Bounds:
    """Bounds of after minus before at the reference's mix, arm by arm.

    >>> change_bounds(baseline, candidate, reference).sign
    -1
    """
    return difference(standardised_bounds(after, reference), standardised_bounds(before, reference))


def dropping_missing(instances: Instances) -> Fraction:
    """Passed of the cells that have a verdict: right only if the missing ones would pass as often. Never used for a decision."""
    observed = int((instances.passed + instances.failed).sum())
    if not observed:
        raise CoverageError(f"no cell of {quote(instances.candidate)} with a verdict", "at least one", "run the missing cells")
    return Fraction(int(instances.passed.sum()), observed)


def decided(campaign: Campaign, rule: ReleaseRule, *, incumbent: str) -> Decided | Unavailable:
    """Whether winner and verdict are the same under every completion of the missing cells, and if not, whose cells decide.

    A challenger is promoted by some completion if and only if it is promoted where its missing cells pass and all others
    fail, and by every completion if and only if it is promoted where its missing cells fail and all others pass. Sign-offs are
    set aside; so is a limit on a number that is not measured yet, except that nothing is certain until it is.
    Raises: what ``decide`` raises. Unavailable where the rule ranks by a number that is missing, or by a reduction of the
    reader's own that does not say ``monotone = True``.
    """
    campaign, rule = _required(campaign, replace(rule, sign_offs=()))
    decide(campaign, rule, incumbent=incumbent)  # its refusals
    views = {name: campaign.of(name, rule.count_as_fail) for name in campaign.candidates}
    keys: dict[str, KeyBounds] = {}
    for name, view in views.items():
        if not view.complete and not all(map(_monotone, rule.key)):
            odd = next(r for r in rule.key if not _monotone(r))
            return Unavailable(f"{name_of(odd)} does not say that it is monotone, so two fillings do not bound it")
        ends = key_bounds(rule.key, view)
        if isinstance(ends, Unavailable):
            return Unavailable(f"{name}: {ends.reason}")
        keys[name] = ends
    winners = _could_lead(keys)
    leaders = _could_lead({name: key for name, key in keys.items() if name != incumbent})
    promotable, at_best = [], []
    for name in leaders:
        others = [other for other in campaign.candidates if other != name]
        measured = replace(rule, limits=tuple(x for x in rule.limits if views[name].columns[x.column].present.all()))
        best = decide(_fill(campaign, rule, [name]), measured, incumbent=incumbent)
        at_best.append(best.verdict)
        if best.verdict == PROMOTE:
            worst = decide(_fill(campaign, rule, others), rule, incumbent=incumbent)
            certain = worst.verdict == PROMOTE and worst.challenger == (name,)
            needed = 0 if certain else _fewest_passes(campaign, measured, name, incumbent, views[name])
            promotable.append(Promotable(name, certain, int(_missing(views[name]).sum()), needed))
    answer = Decided(winners, len(winners) < 2 or all(keys[n].low == keys[n].high for n in winners), tuple(promotable), {}, tuple(at_best))
    if answer.decided:
        return answer
    span = len(rule.key) if rule.tie_breakers_may_promote else 1
    # An incumbent that each promotable challenger beats in every completion has no cell that matters.
    contested = incumbent != NO_INCUMBENT and any(keys[p.candidate].low[:span] <= keys[incumbent].high[:span] for p in promotable)
    alive = [*leaders, *([incumbent] if contested else [])]
    swing = {name: len(_swinging(campaign, rule, name, views[name], name == incumbent)) for name in campaign.candidates if name in alive}
    return replace(answer, swing={name: n for name, n in swing.items() if n})


def rerun_rows(campaign: Campaign, rule: ReleaseRule, *, incumbent: str) -> list[MissingCell]:
    """Every missing cell that the rule does not count as a fail, with its reason, and whether it could change the verdict.

    "no" is proven for every completion of the other cells; "yes" means that it is not ruled out.
    """
    answer = decided(campaign, rule, incumbent=incumbent)
    campaign, rule = _required(campaign, rule)
    rows = []
    for name in campaign.candidates:
        swinging: Collection[tuple[str, str]] | None = None
        if isinstance(answer, Decided):
            view = campaign.of(name, rule.count_as_fail)
            swinging = _swinging(campaign, rule, name, view, name == incumbent) if name in answer.swing else ()
        for instance, repetition, reason in campaign.missing(name, rule.count_as_fail):
            could = swinging is None or (instance, repetition) in swinging
            rows.append(MissingCell(name, instance, repetition, reason, "yes" if could else "no"))
    return rows


def decide_by_bounds(
    campaign: Campaign,
    rule: ReleaseRule,
    *,
    incumbent: str,
    picker: Sequence[Reduction] = (cell_mean,),
    sign_offs: Mapping[str, str] | None = None,
) -> Decision:
    """The decision of a rule; where its coverage is ``decided``, promote where every completion of the missing cells promotes.

    That is where the gate promotes a challenger with all its missing cells failed and everybody else's passed. The incumbent is
    kept where each challenger, with its own missing cells passed and all others failed, does not meet a condition.
    """
    observed = decide(campaign, rule, incumbent=incumbent, picker=picker, sign_offs=sign_offs)
    if rule.coverage == "complete":
        return observed
    if all(standing.coverage.complete for standing in observed.standings):
        return observed
    grid, rule = _required(campaign, rule)
    gaps = "; ".join(f"{s.candidate} {s.coverage}" for s in observed.standings if not s.coverage.complete)
    name = "decided whatever the missing cells say"
    answer = decided(grid, rule, incumbent=incumbent)
    certain = answer.promotes if isinstance(answer, Decided) else None
    if certain is not None:
        others = [c for c in grid.candidates if c != certain]
        worst = decide(_fill(grid, rule, others), rule, incumbent=incumbent, picker=picker, sign_offs=sign_offs)
        if worst.verdict == PROMOTE:  # signed off too
            seen = tuple(c._replace(numbers=f"{c.numbers}, with every missing cell filled for the worst case") for c in worst.conditions)
            reason = Condition(name, MET, f"missing cells of {certain} taken as fail, all others as pass: {gaps}")
            return replace(observed, winner=worst.winner, challenger=worst.challenger, verdict=PROMOTE, conditions=(reason, *seen))
    if isinstance(answer, Decided) and not answer.promotable and UNDECIDED not in answer.at_best:
        reason = Condition(name, NOT_MET, f"no completion of the missing cells promotes a challenger: {gaps}")
        return replace(observed, verdict=KEEP, conditions=(*observed.conditions, reason))
    if observed.verdict == PROMOTE:  # the best of the complete ones, but not whatever the missing cells say
        open_cells = gaps if isinstance(answer, Decided) else f"{gaps}; {answer}"
        return replace(observed, verdict=UNDECIDED, conditions=(*observed.conditions, Condition(name, NOT_EVALUATED, open_cells)))
    return observed


def counts_only(reduction: Reduction) -> bool:
    """A built-in that reads counts of passes alone: a sum, or a mean, over instances of a function of each one's passes."""
    return additive(reduction) and name_of(reduction) != mean_score.__name__ and not name_of(reduction).startswith(f"{lowest.__name__}(")


def additive(reduction: Reduction) -> bool:
    """A built-in: where every instance plans as many repetitions, it is a sum, or a mean, over the instances."""
    return getattr(reduction, "__module__", "") == built_in.__name__


def instance_value(reduction: Reduction, passed: int, planned: int) -> int | Fraction:
    """A reduction that ``counts_only``, on a single instance."""
    one = np.array([passed], np.int64)
    return reduction(Instances("", ("",), one, planned - one, np.array([planned], np.int64)))


def _monotone(reduction: Reduction) -> bool:
    return bool(getattr(reduction, "monotone", additive(reduction)))


def _missing(view: Instances) -> Counts:
    return view.planned - view.passed - view.failed


def _with_passes(view: Instances, passes: Counts) -> Instances:
    """The view with this many of each instance's missing cells passed, the rest failed."""
    return replace(view, passed=view.passed + passes, failed=view.planned - view.passed - passes)


def _coverage(view: Instances) -> str:
    return f"{int((view.passed + view.failed).sum())} of {view.cells} cells"


def _extremes(value: Callable[[Instances], _V], reductions: Sequence[Reduction], view: Instances) -> tuple[_V, _V] | Unavailable:
    gaps = _missing(view)
    try:
        if all(map(_monotone, reductions)):
            return value(_with_passes(view, gaps * 0)), value(_with_passes(view, gaps))
        at = np.flatnonzero(gaps)
        completions = math.prod(int(n) + 1 for n in gaps[at])
        if completions > _MOST_COMPLETIONS:
            odd = next(r for r in reductions if not _monotone(r))
            return Unavailable(f"{completions} completions, and {name_of(odd)} does not say that it is monotone")
        values = []
        for passes in itertools.product(*(range(int(n) + 1) for n in gaps[at])):
            chosen = np.zeros_like(gaps)
            chosen[at] = passes
            values.append(value(_with_passes(view, chosen)))
        return min(values), max(values)
    except CoverageError as gap:
        return Unavailable(gap.found)


def _assessed(tally: Tally, passing: int) -> Tally:
    """The tally with every unassessed request failed (0) or passed (1)."""
    passed = tuple(x + passing * (asked - n) for x, n, asked in zip(tally.passed, tally.assessed, tally.requested, strict=True))
    return replace(tally, passed=passed, assessed=tally.requested)


def _assessed_of(tally: Tally) -> str:
    return f"{sum(tally.assessed)} of {sum(tally.requested)} requests"


def _required(campaign: Campaign, rule: ReleaseRule) -> tuple[Campaign, ReleaseRule]:
    """The grid that the rule requires, and the rule on that grid."""
    if rule.required_repetitions is None:
        return campaign, rule
    return campaign.require(rule.required_repetitions), replace(rule, required_repetitions=None)


def _reasons(rule: ReleaseRule) -> list[int]:
    return [CODE[word] for word in MISSING if word not in rule.count_as_fail]


def _fill(campaign: Campaign, rule: ReleaseRule, passing: Sequence[str]) -> Campaign:
    """Every cell that the rule calls missing filled: pass for the candidates in ``passing``, fail for the others."""
    gaps = np.isin(campaign.codes, _reasons(rule))
    fill = np.array([PASS if name in passing else FAIL for name in campaign.candidates], np.uint8)
    return replace(campaign, codes=np.where(gaps, fill[:, None], campaign.codes))


def _could_lead(keys: Mapping[str, KeyBounds]) -> tuple[str, ...]:
    """Who comes first, alone or tied, in some completion."""
    top = max(key.low for key in keys.values())  # a candidate's own low is never above its high
    return tuple(name for name, key in keys.items() if key.high >= top)


def _swinging(campaign: Campaign, rule: ReleaseRule, name: str, view: Instances, is_incumbent: bool) -> set[tuple[str, str]]:
    """The missing cells (instance, repetition) of a candidate that can change its key or a condition on it."""
    gaps = _missing(view)
    c = campaign.candidates.index(name)
    moves: dict[tuple[int, int], bool] = {}

    def moves_key(i: int) -> bool:
        low, up, planned = int(view.passed[i]), int(view.passed[i] + gaps[i]), int(view.planned[i])
        if (low, up) not in moves:
            moves[low, up] = any(
                not additive(r) or (counts_only(r) and instance_value(r, low, planned) != instance_value(r, up, planned)) for r in rule.key
            )
        return moves[low, up]

    found = set()
    for r, i in np.argwhere(np.isin(campaign.codes[:, c], _reasons(rule))).tolist():
        blocking = view.groups is not None and view.groups[i] in rule.blocking_groups
        unmeasured = any(not campaign.columns[limit.column].present[r, c, i] for limit in rule.limits)
        if moves_key(i) or (not is_incumbent and (blocking or unmeasured or not view.passed.any())):
            found.add((campaign.instances[i], campaign.repetitions[r]))
    return found


def _fewest_passes(campaign: Campaign, rule: ReleaseRule, name: str, incumbent: str, view: Instances) -> int | None:
    """The fewest of a candidate's missing cells that must pass for it to be promoted while all others' missing cells fail.

    Keys of built-in reductions add up over instances, and lexicographic order survives addition, so the best key that j passes
    can buy follows instance by instance (dynamic programming); the gate itself then says which j is enough.
    """
    gaps = _missing(view)
    if not all(map(additive, rule.key)) or int(gaps.sum()) > _MOST_SEARCHED:
        return None
    worth = _worth([r for r in rule.key if counts_only(r)], len(campaign.repetitions), len(gaps))
    best: dict[int, tuple[int, tuple[Any, ...]]] = {0: (0, ())}  # passes spent: the key's worth, (passes of this instance, of those before)
    at = np.flatnonzero(gaps).tolist()
    for i in at:
        low, up = int(view.passed[i]), int(gaps[i])
        must = view.groups is not None and view.groups[i] in rule.blocking_groups
        wider: dict[int, tuple[int, tuple[Any, ...]]] = {}
        for passes in range(up if must else 0, up + 1):
            more = worth[low + passes]
            for spent, (value, chosen) in best.items():
                if spent + passes not in wider or wider[spent + passes][0] < value + more:
                    wider[spent + passes] = value + more, (passes, chosen)
        best = wider
    failed = _fill(campaign, rule, [])
    c = campaign.candidates.index(name)

    missing = np.isin(campaign.codes[:, c], _reasons(rule))

    def promoted(chosen: tuple[Any, ...]) -> bool:
        codes = failed.codes.copy()
        for i in reversed(at):
            passes, chosen = chosen
            codes[np.flatnonzero(missing[:, i])[:passes], c, i] = PASS
        decision = decide(replace(failed, codes=codes), rule, incumbent=incumbent)
        return decision.verdict == PROMOTE and decision.challenger == (name,)

    # More passes never hurt, so the fewest are found by halving; all of them are enough.
    return bisect_left(range(max(best)), True, min(best), key=lambda j: promoted(best[j][1]))


def _worth(counted: Sequence[Reduction], planned: int, instances: int) -> list[int]:
    """What an instance with so many passes adds to a key, as one whole number that keeps the key's order, left to right."""
    rows = [np.array([Fraction(instance_value(r, passed, planned)) for passed in range(planned + 1)], object) for r in counted]
    scale = math.lcm(*(value.denominator for row in rows for value in row))
    worth = np.zeros(planned + 1, object)
    for row in rows:
        whole = row * scale
        base = instances * max(whole) + 1  # no sum over instances is as much; none is negative
        worth = worth * base + whole
    return [int(value) for value in worth]

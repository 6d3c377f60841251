"""Rank candidates under a key, gate the best challenger, and say three labels.

Selection is not promotion: the highest descriptive mean, the winner under the release rule's key, and whether that winner
may replace the incumbent are three answers. One code path computes a key, for the picker and for the gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from ._exact import as_text, decimal, is_exact, rational
from .campaign import MISSING, Campaign, Coverage, Instances, require_complete
from .errors import CoverageError, InputError, RankKeyError, RuleError, listing, plain, quote
from .reductions import Reduction, cell_mean, counted, name_of, named, unit_of

__all__ = [
    "Condition", "Decision", "Limit", "Place", "ReleaseRule", "Standing", "decide", "parse_picker", "parse_sign_offs", "rank",
    "rank_key", "review",
]  # fmt: skip

RankKey: TypeAlias = "tuple[int | Fraction, ...]"
NO_INCUMBENT = "none"
COVERAGES = ("complete", "decided")
STATISTICS = ("total", "mean", "maximum")
ABOVE, FLOOR = "strictly above the incumbent", "at or above the floor"
MET, NOT_MET, NOT_EVALUATED = "met", "not met", "not evaluated"
PROMOTE, KEEP, UNDECIDED = "promote", "keep the incumbent", "undecided"


@dataclass(frozen=True)
class Limit:
    """A ceiling on a numeric column of the challenger: its total, mean or maximum over the planned cells."""

    column: str
    statistic: str
    at_most: Fraction

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise RuleError(f"statistic {quote(self.statistic)}", "one of " + ", ".join(STATISTICS), "correct the limit")

    def __str__(self) -> str:
        return f"{self.statistic} {self.column} at most {as_text(self.at_most)}"


@dataclass(frozen=True)
class ReleaseRule:
    """What promotes: a reduction, its tie-breakers, and the conditions around it. Owner and purpose come with it.

    ``floor`` applies to the first element of the key. Strict improvement means the first element, unless
    ``tie_breakers_may_promote``. ``required_repetitions`` of None means every planned repetition.
    """

    rule_id: str
    owner: str
    purpose: str
    reduction: Reduction
    tie_breakers: tuple[Reduction, ...] = ()
    tie_breakers_may_promote: bool = False
    required_repetitions: tuple[str, ...] | None = None
    count_as_fail: tuple[str, ...] = ()
    floor: int | Fraction | None = None
    blocking_groups: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    sign_offs: tuple[str, ...] = ()
    coverage: str = "complete"  # or "decided": promote where every completion of the missing cells would (see bounds)
    margin: Fraction | None = None  # how far ahead, in the share of instances, a tested lower limit must be (see uncertainty)
    alpha: Fraction = Fraction(1, 20)  # of that test, divided by the number of challengers
    unit_reason: str = ""  # why a picker may count another unit than this rule

    def __post_init__(self) -> None:
        for reduction in self.key:
            unit_of(reduction)
        for word in self.count_as_fail:
            if word not in MISSING:
                raise RuleError(f"count_as_fail {quote(word)}", "a reason: " + ", ".join(MISSING), "correct the rule")
        if self.coverage not in COVERAGES:
            raise RuleError(f"coverage {quote(self.coverage)}", " or ".join(COVERAGES), "correct the rule")
        if self.margin is not None and unit_of(self.reduction) != "instances":
            raise RuleError(f"a margin for {name_of(self.reduction)}", "a reduction that counts instances", "leave the margin out")
        if not 0 <= rational(0 if self.margin is None else self.margin) < 1 or not 0 < rational(self.alpha) < Fraction(1, 2):
            raise RuleError(f"margin {self.margin}, alpha {self.alpha}", "0 <= margin < 1 and 0 < alpha < 1/2", "correct the rule")
        if self.required_repetitions is not None and not self.required_repetitions:
            raise RuleError("no required repetition", "at least one", "name them, or leave every planned one required")
        if self.floor is not None and not name_of(self.reduction).startswith("lowest") and rational(self.floor) <= 0:
            raise RuleError(f"floor {self.floor}", "a floor above 0", "a floor that nothing can miss is none; raise it or leave it out")

    @property
    def key(self) -> tuple[Reduction, ...]:
        """The reductions of the rank key, left to right."""
        return (self.reduction, *self.tie_breakers)


class Place(NamedTuple):
    """A candidate's place in a ranking; equal keys share a place."""

    place: int
    candidate: str
    key: RankKey


class Standing(NamedTuple):
    """One candidate as the report shows it: coverage, counts, and, where complete, its key under the rule."""

    coverage: Coverage
    passed: int
    failed: int
    place: int | None
    key: RankKey | None
    counts: tuple[str, ...]  # each element of the key with its denominator
    mean: Fraction | None
    why_unplaced: str = ""

    @property
    def candidate(self) -> str:
        """The candidate's name."""
        return self.coverage.candidate


class Condition(NamedTuple):
    """One condition of the gate, with the numbers that decided it."""

    name: str
    state: str
    numbers: str


class Review(NamedTuple):
    """Winner key, release rule, reported summary: (role, what, unit) each, and the word on whether the first two agree."""

    rows: tuple[tuple[str, str, str], ...]
    agree: bool
    note: str


@dataclass(frozen=True)
class Decision:
    """Three labels and the reasons. ``highest_mean``, ``winner`` and ``picked`` name every candidate that shares the first place."""

    incumbent: str
    standings: tuple[Standing, ...]
    highest_mean: tuple[str, ...]
    picked: tuple[str, ...]
    winner: tuple[str, ...]
    challenger: tuple[str, ...]
    verdict: str
    conditions: tuple[Condition, ...]
    sign_offs: Mapping[str, str]
    picker: tuple[Reduction, ...]
    review: Review

    @property
    def reasons(self) -> tuple[str, ...]:
        """The sentences behind the verdict: every condition that withheld, or, for a promotion, each that was met.

        The comparison with the incumbent or the floor comes first, whoever could not be ranked last.
        """
        withheld = [c for c in self.conditions if c.state != MET]
        told = sorted(withheld or self.conditions, key=lambda c: not c.name.startswith((ABOVE, FLOOR)))
        gaps = [
            f"{plain(s.candidate)} is not ranked: {s.coverage if not s.coverage.complete else s.why_unplaced}"
            for s in self.standings
            if s.why_unplaced
        ]
        return (*(f"{c.name}: {c.state} ({c.numbers})" for c in told), *gaps)


def rank_key(instances: Instances, reductions: Sequence[Reduction]) -> RankKey:
    """The rank key of one candidate: a tuple of exact numbers, left to right, higher is better.

    Raises: CoverageError if a planned cell is missing; RankKeyError if a reduction returns anything but int or Fraction.
    Source: the winner-rule article.

    >>> from evalkit import fail_closed
    >>> rank_key(fixture["CLAUDE"], [fail_closed, cell_mean])
    (2, Fraction(5, 12))
    """
    return _checked(tuple(reduction(instances) for reduction in reductions))


def rank(keys: Mapping[str, RankKey]) -> list[Place]:
    """Candidates from first to last; equal keys share a place, and no name or order ever breaks a tie.

    Raises: RankKeyError for an empty key, keys of different lengths, or an element that is not int or Fraction.

    >>> [(p.place, p.candidate) for p in rank({"A": (1,), "B": (2,), "C": (2,)})]
    [(1, 'B'), (1, 'C'), (3, 'A')]
    """
    lengths = {len(_checked(key)) for key in keys.values()}
    if len(lengths) > 1:
        raise RankKeyError(f"keys of {' and '.join(map(str, sorted(lengths)))} elements", "keys of one length", "use one key for all")
    order = sorted(keys.values(), reverse=True)
    first = {key: order.index(key) + 1 for key in set(order)}
    return sorted((Place(first[key], name, key) for name, key in keys.items()), key=lambda p: p.place)


def _checked(key: object) -> RankKey:
    if not isinstance(key, tuple) or not key:
        raise RankKeyError(quote(key), "a non-empty tuple of numbers", "return at least one number")
    for element in key:
        if not is_exact(element):
            raise RankKeyError(
                f"{quote(element)} ({type(element).__name__}) in a rank key",
                "int or Fraction",
                "return an exact number (int() of a numpy count); nan, floats and booleans do not order",
            )
    return key


def parse_sign_offs(text: str) -> dict[str, str]:
    """``role=name; role=name`` as a parameter gives it: recorded, not verified.

    >>> parse_sign_offs("safety=Ada; release = Grace")
    {'safety': 'Ada', 'release': 'Grace'}
    """
    signed: dict[str, str] = {}
    for part in filter(str.strip, text.split(";")):
        role, equals, name = (piece.strip() for piece in part.partition("="))
        if not role or not equals or not any(map(str.isalnum, name)) or role in signed:
            raise InputError(f"sign-off {quote(part.strip())}", "role=name, each role once, separated by semicolons", "correct sign_offs")
        signed[role] = name
    return signed


def parse_picker(text: str) -> tuple[Reduction, ...]:
    """The reductions of a picker from a parameter such as ``fail_closed, cell_mean``."""
    return tuple(named(part.strip()) for part in text.split(","))


def review(rule: ReleaseRule, picker: Sequence[Reduction]) -> Review:
    """Which unit do the winner key, the release rule and the reported summary count? Unlike units need a reason.

    Raises: RuleError for a reduction that states no unit. Source: the winner-rule article's practical review.

    >>> from evalkit import fail_closed
    >>> review(ReleaseRule("r", "me", "demo", fail_closed), [cell_mean]).agree
    False
    """
    key, rule_unit = [unit_of(r) for r in picker], unit_of(rule.reduction)
    rows = (
        ("winner key", ", then ".join(map(name_of, picker)), ", then ".join(key)),
        ("release rule", ", then ".join(map(name_of, rule.key)), ", then ".join(map(unit_of, rule.key))),
        ("reported summary", name_of(cell_mean), unit_of(cell_mean)),
    )
    if name_of(picker[0]) == name_of(rule.reduction):
        return Review(rows, True, f"The winner key and the release rule both come from {name_of(rule.reduction)}.")
    unlike = (
        f"counts {key[0]}, the release rule counts {rule_unit}"
        if key[0] != rule_unit
        else f"is {name_of(picker[0])}, the rule's is another"
    )
    if rule.unit_reason:
        return Review(rows, True, f"The winner key {unlike}; the rule's reason: {rule.unit_reason}")
    return Review(rows, False, f"The winner key {unlike}, and the rule gives no reason: use one reduction for both.")


def decide(
    campaign: Campaign,
    rule: ReleaseRule,
    *,
    incumbent: str,
    picker: Sequence[Reduction] = (cell_mean,),
    sign_offs: Mapping[str, str] | None = None,
) -> Decision:
    """The three labels, and whether the best challenger may replace the incumbent.

    ``incumbent`` is a candidate of the campaign, or ``none`` spelled out, and then the rule must declare a floor.
    Raises: RuleError or InputError where the gate cannot be applied to these data at all.

    >>> from evalkit import read_campaign, read_rule
    >>> decision = decide(read_campaign(), read_rule(), incumbent="BASELINE")
    >>> decision.highest_mean, decision.winner, decision.verdict
    (('MERGE',), ('CLAUDE',), 'promote')
    """
    if rule.required_repetitions is not None:
        campaign = campaign.require(rule.required_repetitions)
    _refuse_inapplicable(campaign, rule, incumbent)
    signed = dict(sign_offs or {})
    views = {name: campaign.of(name, rule.count_as_fail) for name in campaign.candidates}
    keys, gaps = _keys(views, rule.key)
    means, _ = _keys(views, (cell_mean,))
    picked, _ = _keys(views, picker)
    places = {place.candidate: place.place for place in rank(keys)}
    standings = []
    for name, view in views.items():
        key = keys.get(name)
        standings.append(
            Standing(
                campaign.coverage(name, rule.count_as_fail),
                int(view.passed.sum()),
                int(view.failed.sum()),
                places.get(name),
                key,
                tuple(counted(r, view, value) for r, value in zip(rule.key, key, strict=True)) if key else (),
                means[name][0] if name in means else None,  # type: ignore[arg-type]
                gaps.get(name, ""),
            )
        )
    standings.sort(key=lambda s: (s.place is None, s.place or 0))  # the unplaced last
    challengers = {name: key for name, key in keys.items() if name != incumbent}
    best = _first(challengers)
    conditions = _gate(campaign, rule, incumbent, views, keys, gaps, best, signed)
    return Decision(
        incumbent,
        tuple(standings),
        _first(means),
        _first(picked),
        _first(keys),
        best,
        verdict_of(conditions, list(gaps)),
        tuple(conditions),
        signed,
        tuple(picker),
        review(rule, picker),
    )


def _keys(views: Mapping[str, Instances], reductions: Sequence[Reduction]) -> tuple[dict[str, RankKey], dict[str, str]]:
    """The keys of the complete candidates, and why each other one has none."""
    keys: dict[str, RankKey] = {}
    gaps: dict[str, str] = {}
    for name, view in views.items():
        try:
            if not view.complete:  # whatever a reduction of the reader's own makes of a missing cell
                require_complete(view)
            keys[name] = rank_key(view, reductions)
        except CoverageError as gap:
            gaps[name] = f"incomplete: {gap.found}"
    return keys, gaps


def _first(keys: Mapping[str, RankKey]) -> tuple[str, ...]:
    return tuple(place.candidate for place in rank(keys) if place.place == 1)


def _refuse_inapplicable(campaign: Campaign, rule: ReleaseRule, incumbent: str) -> None:
    if not incumbent:
        raise InputError(
            "no incumbent",
            "the candidate in use now: " + listing(campaign.candidates, 13),
            f"name it, or spell out {NO_INCUMBENT} with a rule that declares a floor",
        )
    if incumbent == NO_INCUMBENT:
        if incumbent in campaign.candidates:
            raise InputError(
                f"a candidate named {NO_INCUMBENT}", "another name", f"rename it; {NO_INCUMBENT} means that there is no incumbent"
            )
        if rule.floor is None:
            raise RuleError(f"incumbent {NO_INCUMBENT} and a rule without a floor", "a floor", "declare one, or name the incumbent")
    elif incumbent not in campaign.candidates:
        raise InputError(
            f"incumbent {quote(incumbent)}", "one of " + listing(campaign.candidates, 13), "name a candidate, or add the incumbent's rows"
        )
    elif len(campaign.candidates) == 1:
        raise InputError("only the incumbent", "at least one challenger", "add the challenger's rows")
    lacking = [group for group in rule.blocking_groups if group not in (campaign.groups or ())]
    if lacking:
        raise RuleError(
            f"no instance in blocking group {listing(lacking)}",
            "one of " + listing(sorted(set(campaign.groups))) if campaign.groups else "a group column",
            "add the group to the campaign; a safety check without data cannot pass",
        )
    for limit in rule.limits:
        if limit.column not in campaign.columns:
            raise RuleError(f"no numeric column {quote(limit.column)}", f"the column of the limit '{limit}'", "add it to the campaign")


def _gate(
    campaign: Campaign,
    rule: ReleaseRule,
    incumbent: str,
    views: Mapping[str, Instances],
    keys: Mapping[str, RankKey],
    gaps: Mapping[str, str],
    best: tuple[str, ...],
    signed: Mapping[str, str],
) -> list[Condition]:
    """Every condition of the rule, met, not met or not evaluated."""
    conditions: list[Condition] = []

    def add(name: str, met: bool | None, numbers: str) -> None:
        conditions.append(Condition(name, NOT_EVALUATED if met is None else MET if met else NOT_MET, numbers))

    def shown(name: str, position: int = 0) -> str:
        return f"{plain(name)} {counted(rule.key[position], views[name], keys[name][position])}"

    if incumbent != NO_INCUMBENT:
        add(
            "the incumbent is complete",
            None if incumbent in gaps else True,
            gaps.get(incumbent) or str(campaign.coverage(incumbent, rule.count_as_fail)),
        )
    if best:
        coverage = "; ".join(f"{plain(name)} {campaign.coverage(name, rule.count_as_fail)}" for name in best)
        add("a challenger is complete", True, coverage)
        # Tied challengers have equal keys, so the comparison with the incumbent is the same for each of them.
        add("one challenger is best", None if len(best) > 1 else True, ("tied: " if len(best) > 1 else "") + "; ".join(map(shown, best)))
    else:
        add("a challenger is complete", None, "; ".join(f"{plain(n)} {why}" for n, why in gaps.items() if n != incumbent))
    top = best[0] if best else None
    if incumbent != NO_INCUMBENT:
        name = ABOVE + (" (tie-breakers may promote)" if rule.tie_breakers_may_promote else "")
        if top is None or incumbent in gaps:
            add(name, None, "no two complete candidates to compare")
        else:
            span = len(rule.key) if rule.tie_breakers_may_promote else 1
            ours, theirs = keys[top][:span], keys[incumbent][:span]
            decisive = next((i for i in range(span) if ours[i] != theirs[i]), span - 1)
            sign = ">" if ours > theirs else "=" if ours == theirs else "<"
            add(name, ours > theirs, f"{shown(top, decisive)} {sign} {shown(incumbent, decisive)}")
    if rule.floor is not None:
        add(
            f"{FLOOR} {as_text(rule.floor)}",
            None if top is None else keys[top][0] >= rule.floor,
            shown(top) if top else "no complete challenger",
        )
    add("the challenger passed a cell", None if top is None else int(views[top].passed.sum()) > 0,
        f"{plain(top)} {int(views[top].passed.sum())} of {views[top].cells} cells" if top else "no complete challenger")  # fmt: skip
    if rule.tie_breakers_may_promote and not name_of(rule.reduction).startswith("lowest"):
        # A tie at zero is no reason to replace anybody, whatever the tie-breakers say.
        add("above zero before any tie-breaker", None if top is None else keys[top][0] > 0, shown(top) if top else "no complete challenger")
    alone = best[0] if len(best) == 1 else None
    for group in rule.blocking_groups:
        if alone is None:
            add(f"every cell of group {group} passed", None, "no single complete challenger")
            continue
        inside = np.array([label == group for label in views[alone].groups or ()])
        passed, planned = int(views[alone].passed[inside].sum()), int(views[alone].planned[inside].sum())
        add(f"every cell of group {group} passed", passed == planned, f"{plain(alone)} {passed} of {planned} cells")
    for limit in rule.limits:
        add(str(limit), *_within(limit, None if alone is None else views[alone]))
    for role in rule.sign_offs:
        add(f"signed off by {role}", True if role in signed else None, signed.get(role, "nobody yet"))
    return conditions


def _within(limit: Limit, view: Instances | None) -> tuple[bool | None, str]:
    if view is None:
        return None, "no single complete challenger"
    column = view.columns[limit.column]
    measured = int(np.count_nonzero(column.present))
    if measured != column.present.size:
        return None, f"{plain(view.candidate)}: {limit.column} measured in {measured} of {column.present.size} cells"
    number = column.largest() if limit.statistic == "maximum" else column.total()
    number = number / measured if limit.statistic == "mean" else number
    return number <= limit.at_most, f"{plain(view.candidate)} {limit.statistic} {plain(limit.column)} {_exactly(number)}"


def _exactly(number: Fraction) -> str:
    """Whole, or three decimals where they say the number exactly, else the fraction, so that 42.0001 never reads as 42.000."""
    return decimal(number) if number.denominator > 1 and (number * 1000).denominator == 1 else as_text(number)


def verdict_of(conditions: Sequence[Condition], incomplete: Sequence[str]) -> str:
    """All met promotes. A condition that failed keeps the incumbent, unless a candidate without all its cells could yet change that."""
    states = {condition.state for condition in conditions}
    if states == {MET}:
        return PROMOTE
    return KEEP if NOT_MET in states and not incomplete else UNDECIDED

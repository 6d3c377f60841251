"""The kit's answers again in plain Python: dictionaries, loops and Fractions, nothing of the kit and nothing of numpy.

Written from the two articles and the rules of the README, slow on purpose. A chance of k repetitions is counted over every
choice of k, a bound over every completion of what is missing, dominance over a grid of mixes: no shortcut that the kit takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist
from typing import Any, NamedTuple

MISSING_REASONS = ("absent", "error", "timeout", "cancelled", "ungraded")
MET, NOT_MET, NOT_EVALUATED = "met", "not met", "not evaluated"
PROMOTE, KEEP, UNDECIDED = "promote", "keep the incumbent", "undecided"
Cell = tuple[str, str, str]  # candidate, instance, repetition
Key = tuple[Fraction, ...]


class Refused(Exception):
    """Every kind of refusal that this input deserves; which one comes first is not part of the claim."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = set(kinds)
        super().__init__(*kinds)


class Lacking(Exception):
    """A number that cannot be had, since a cell has no verdict or no measurement."""


class Row(NamedTuple):
    candidate: str
    instance: str
    repetition: str
    outcome: str
    group: str | None = None
    cost: Fraction | None = None
    score: Fraction | None = None


class Rule(NamedTuple):
    key: tuple[tuple[Any, ...], ...]  # ("fail_closed",), ("at_least", 2), ("lowest", "cost")
    tie_breakers_may_promote: bool = False
    required: tuple[str, ...] | None = None
    count_as_fail: tuple[str, ...] = ()
    floor: Fraction | None = None
    blocking: tuple[str, ...] = ()
    limits: tuple[tuple[str, str, Fraction], ...] = ()
    sign_offs: tuple[str, ...] = ()
    margin: Fraction | None = None
    alpha: Fraction = Fraction(1, 20)


class Grid(NamedTuple):
    """The planned cells: each one's outcome, each instance's group, the measured numbers that are there."""

    candidates: list[str]
    instances: list[str]
    repetitions: list[str]
    outcome: dict[Cell, str]
    group: dict[str, str] | None
    numbers: dict[str, dict[Cell, Fraction]]


class Verdict(NamedTuple):
    places: dict[str, int]
    keys: dict[str, Key]
    highest_mean: set[str]
    picked: set[str]
    winner: set[str]
    challenger: set[str]
    conditions: dict[str, str]
    verdict: str


def planned(rows: Sequence[Row], inventory: Mapping[str, str | None] | None, columns: Sequence[str]) -> Grid:
    """Every candidate on every instance in every repetition; a cell that no row names is absent."""
    outcome: dict[Cell, str] = {}
    group: dict[str, str] = {i: g for i, g in (inventory or {}).items() if g is not None}
    numbers: dict[str, dict[Cell, Fraction]] = {column: {} for column in columns}
    for row in rows:
        cell = (row.candidate, row.instance, row.repetition)
        if cell in outcome or (inventory is not None and row.instance not in inventory):
            raise Refused("InputError")
        if row.group is not None and group.setdefault(row.instance, row.group) != row.group:
            raise Refused("InputError")
        outcome[cell] = row.outcome
        for column in columns:
            if getattr(row, column) is not None:
                numbers[column][cell] = getattr(row, column)
    if not rows:
        raise Refused("InputError")
    candidates = sorted({row.candidate for row in rows})
    instances = sorted(inventory if inventory is not None else {row.instance for row in rows})
    repetitions = sorted({row.repetition for row in rows})
    ran = {c: {row.repetition for row in rows if row.candidate == c} for c in candidates}
    if any(len(ran[a]) == len(ran[b]) and ran[a] != ran[b] for a in candidates for b in candidates):
        raise Refused("InputError")
    of_instance = {r: {row.instance for row in rows if row.repetition == r} for r in repetitions}
    if len(repetitions) > 1 and len(instances) > 1 and all(len(found) == 1 for found in of_instance.values()):
        raise Refused("InputError")
    for cell in itertools.product(candidates, instances, repetitions):
        outcome.setdefault(cell, "absent")
    return Grid(candidates, instances, repetitions, outcome, group or None, numbers)


def required(grid: Grid, rule: Rule) -> Grid:
    """The repetitions that the rule requires: others are refused, those that nobody ran are absent."""
    if rule.required is None:
        return grid
    if set(grid.repetitions) - set(rule.required):
        raise Refused("RuleError")
    cells = itertools.product(grid.candidates, grid.instances, rule.required)
    return grid._replace(repetitions=sorted(rule.required), outcome={cell: grid.outcome.get(cell, "absent") for cell in cells})


def counting(grid: Grid, rule: Rule) -> Grid:
    """What the rule calls a fail is one, and scores 0."""
    outcome = {cell: "fail" if word in rule.count_as_fail else word for cell, word in grid.outcome.items()}
    numbers = dict(grid.numbers)
    if "score" in numbers:
        forced = {cell: Fraction(0) for cell, word in grid.outcome.items() if word in rule.count_as_fail}
        numbers["score"] = {**numbers["score"], **forced}
    return grid._replace(outcome=outcome, numbers=numbers)


def cells_of(grid: Grid, candidate: str, group: str | None = None) -> list[Cell]:
    inside = [i for i in grid.instances if group is None or (grid.group or {}).get(i) == group]
    return [(candidate, i, r) for i in inside for r in grid.repetitions]


def complete(grid: Grid, candidate: str) -> bool:
    return all(grid.outcome[cell] in ("pass", "fail") for cell in cells_of(grid, candidate))


def value(grid: Grid, candidate: str, reduction: tuple[Any, ...]) -> Fraction:
    """One reduction of one candidate."""
    if not complete(grid, candidate):
        raise Lacking
    name = reduction[0]
    table = [[grid.outcome[candidate, i, r] == "pass" for r in grid.repetitions] for i in grid.instances]
    if name in ("lowest", "mean_score"):
        column = "score" if name == "mean_score" else reduction[1]
        if column not in grid.numbers:
            raise Refused("RuleError")
        found = [grid.numbers[column][cell] for cell in cells_of(grid, candidate) if cell in grid.numbers[column]]
        if len(found) != len(table) * len(grid.repetitions):
            raise Lacking
        total = sum(found, Fraction(0))
        return -total if name == "lowest" else total / len(found)
    if name == "passing_cells":
        return Fraction(sum(sum(row) for row in table))
    if name == "cell_mean":
        return Fraction(sum(sum(row) for row in table), sum(len(row) for row in table))
    if name == "fail_closed":
        return Fraction(sum(all(row) for row in table))
    k = reduction[1]
    if not 1 <= k <= len(grid.repetitions):
        raise Refused("RuleError")
    if name == "at_least":
        return Fraction(sum(sum(row) >= k for row in table))
    wanted = any if name == "pass_at" else all
    shares = []
    for row in table:
        draws = list(itertools.combinations(row, k))
        shares.append(Fraction(sum(wanted(draw) for draw in draws), len(draws)))
    return sum(shares, Fraction(0)) / len(shares)


def key_of(grid: Grid, candidate: str, reductions: Sequence[tuple[Any, ...]]) -> Key:
    return tuple(value(grid, candidate, reduction) for reduction in reductions)


def keys_of(grid: Grid, reductions: Sequence[tuple[Any, ...]]) -> dict[str, Key]:
    """The keys of those that have one."""
    keys = {}
    for candidate in grid.candidates:
        try:
            keys[candidate] = key_of(grid, candidate, reductions)
        except Lacking:
            continue
    return keys


def leading(keys: Mapping[str, Key]) -> set[str]:
    return {c for c, key in keys.items() if not any(other > key for other in keys.values())}


def unfit(grid: Grid, rule: Rule, incumbent: str) -> set[str]:
    """Why the gate cannot be applied to these data at all."""
    kinds = set()
    if incumbent == "none":
        if "none" in grid.candidates:
            kinds.add("InputError")
        if rule.floor is None:
            kinds.add("RuleError")
    elif incumbent not in grid.candidates or len(grid.candidates) == 1:
        kinds.add("InputError")
    if any(group not in (grid.group or {}).values() for group in rule.blocking):
        kinds.add("RuleError")
    if any(column not in grid.numbers for column, _, _ in rule.limits):
        kinds.add("RuleError")
    return kinds


def malformed(rule: Rule) -> set[str]:
    """Why this is no release rule."""
    kinds = set()
    if rule.floor is not None and rule.key[0][0] != "lowest" and rule.floor <= 0:
        kinds.add("RuleError")  # nothing can miss it
    if rule.margin is not None and rule.key[0][0] not in ("fail_closed", "at_least"):
        kinds.add("RuleError")  # the test behind a margin counts instances
    return kinds


def decide(
    grid: Grid, rule: Rule, incumbent: str, picker: Sequence[tuple[Any, ...]] = (("cell_mean",),), signed: Sequence[str] = ()
) -> Verdict:
    """Three labels, every condition, and the verdict."""
    kinds = malformed(rule)
    try:
        grid = required(grid, rule)
    except Refused as refused:
        kinds |= refused.kinds
    if kinds := kinds | unfit(grid, rule, incumbent):
        raise Refused(*kinds)
    grid = counting(grid, rule)
    keys, means, picks = keys_of(grid, rule.key), keys_of(grid, (("cell_mean",),)), keys_of(grid, picker)
    best = leading({c: key for c, key in keys.items() if c != incumbent})
    top = min(best) if best else None  # tied challengers have one key
    alone = top if len(best) == 1 else None
    states: dict[str, str] = {}

    def state(name: str, met: bool | None) -> None:
        states[name] = NOT_EVALUATED if met is None else MET if met else NOT_MET

    if incumbent != "none":
        state("incumbent complete", True if incumbent in keys else None)
        span = len(rule.key) if rule.tie_breakers_may_promote else 1
        state("above", None if top is None or incumbent not in keys else keys[top][:span] > keys[incumbent][:span])
    state("challenger complete", True if best else None)
    if best:
        state("one best", True if alone else None)
    if rule.floor is not None:
        state("floor", None if top is None else keys[top][0] >= rule.floor)
    passed = None if top is None else sum(grid.outcome[cell] == "pass" for cell in cells_of(grid, top))
    state("passed a cell", None if passed is None else passed > 0)
    if rule.tie_breakers_may_promote and rule.key[0][0] != "lowest":
        state("above zero", None if top is None else keys[top][0] > 0)
    for group in rule.blocking:
        state(f"group {group}", None if alone is None else all(grid.outcome[cell] == "pass" for cell in cells_of(grid, alone, group)))
    for column, statistic, at_most in rule.limits:
        state(f"limit {statistic} {column} {at_most}", None if alone is None else within(grid, alone, column, statistic, at_most))
    for role in rule.sign_offs:
        state(f"signed {role}", True if role in signed else None)
    places = {c: 1 + sum(other > key for other in keys.values()) for c, key in keys.items()}
    labels = leading(means), leading(picks), leading(keys), best
    return Verdict(places, keys, *labels, states, verdict_of(states, len(keys) < len(grid.candidates)))


def within(grid: Grid, candidate: str, column: str, statistic: str, at_most: Fraction) -> bool | None:
    """Whether a total, mean or maximum is within its limit; None while a cell is not measured."""
    cells = cells_of(grid, candidate)
    if any(cell not in grid.numbers[column] for cell in cells):
        return None
    found = [grid.numbers[column][cell] for cell in cells]
    return {"total": sum(found), "mean": sum(found) / len(found), "maximum": max(found)}[statistic] <= at_most


def verdict_of(states: Mapping[str, str], someone_unranked: bool) -> str:
    """All met promotes; a condition that failed keeps the incumbent, once everybody can be ranked."""
    if all(found == MET for found in states.values()):
        return PROMOTE
    return KEEP if NOT_MET in states.values() and not someone_unranked else UNDECIDED


# Completions


def gaps(grid: Grid, rule: Rule) -> list[Cell]:
    """The missing cells, on the grid that the rule requires."""
    return [cell for cell, word in sorted(grid.outcome.items()) if word not in ("pass", "fail", *rule.count_as_fail)]


def completions(grid: Grid, cells: Sequence[Cell]) -> Iterator[tuple[tuple[str, ...], Grid]]:
    for words in itertools.product(("fail", "pass"), repeat=len(cells)):
        yield words, grid._replace(outcome={**grid.outcome, **dict(zip(cells, words, strict=True))})


def key_ends(grid: Grid, rule: Rule, candidate: str) -> tuple[Key, Key] | None:
    """The lowest and the highest key over the completions of a candidate's own cells; None where a number is lacking."""
    own = [cell for cell in gaps(grid, rule) if cell[0] == candidate]
    try:
        keys = [key_of(counting(full, rule), candidate, rule.key) for _, full in completions(grid, own)]
    except Lacking:
        return None
    return min(keys), max(keys)


class Open(NamedTuple):
    """What the completions say of winner and verdict."""

    leaders: set[frozenset[str]]  # who comes first, one entry per different answer
    promotable: dict[str, int]  # challenger: the fewest of its own missing cells that pass where it is promoted
    certain: set[str]
    ranked: bool  # everybody has a key in every completion: no number that it needs is missing
    pivotal: set[Cell]  # cells that alone change who is promoted in some completion
    verdicts: set[tuple[str, frozenset[str]]]  # (verdict, challengers) of every completion, signatures included


def everything_open(grid: Grid, rule: Rule, incumbent: str, signed: Sequence[str]) -> Open:
    """Every completion, one by one."""
    grid = required(grid, rule)
    rule = rule._replace(required=None)
    unsigned = rule._replace(sign_offs=())
    cells = gaps(grid, rule)
    seen = counting(grid, rule)
    measured = {
        c: unsigned._replace(limits=tuple(x for x in rule.limits if all(cell in seen.numbers[x[0]] for cell in cells_of(grid, c))))
        for c in grid.candidates
    }
    leaders, verdicts, promoted, always, ranked = set(), set(), {}, [], True
    for words, full in completions(grid, cells):
        found = decide(full, unsigned, incumbent)
        ranked &= len(found.keys) == len(grid.candidates)
        leaders.add(frozenset(found.winner))
        always.append(found.challenger if found.verdict == PROMOTE else set())
        with_signatures = decide(full, rule, incumbent, signed=signed) if rule.sign_offs else found
        verdicts.add((with_signatures.verdict, frozenset(with_signatures.challenger)))
        lead = next(iter(found.challenger)) if len(found.challenger) == 1 else None
        if lead and measured[lead].limits != unsigned.limits:
            found = decide(full, measured[lead], incumbent)
        promoted[words] = lead if found.verdict == PROMOTE else None
    fewest: dict[str, int] = {}
    for words, who in promoted.items():
        if who:
            own = sum(word == "pass" for cell, word in zip(cells, words, strict=True) if cell[0] == who)
            fewest[who] = min(fewest.get(who, own), own)
    pivotal = set()
    for at, cell in enumerate(cells):
        if any(promoted[w] != promoted[(*w[:at], "pass", *w[at + 1 :])] for w in promoted):
            pivotal.add(cell)
    return Open(leaders, fewest, set.intersection(*map(set, always)), ranked, pivotal, verdicts)


# The paired test behind a margin


def ahead(grid: Grid, rule: Rule, incumbent: str, challenger: str) -> tuple[bool, bool]:
    """Whether Tango's lower limit is above the margin, and whether it is too close to call in decimals."""
    grid = counting(required(grid, rule), rule)
    assert rule.margin is not None
    k = rule.key[0][1] if rule.key[0][0] == "at_least" else len(grid.repetitions)
    held = {
        c: [sum(grid.outcome[c, i, r] == "pass" for r in grid.repetitions) >= k for i in grid.instances] for c in (challenger, incumbent)
    }
    b = sum(a and not z for a, z in zip(held[challenger], held[incumbent], strict=True))
    c = sum(z and not a for a, z in zip(held[challenger], held[incumbent], strict=True))
    tried = len(grid.candidates) - (incumbent in grid.candidates)
    z = Decimal(NormalDist().inv_cdf(float(1 - rule.alpha / tried)))
    n, d = len(grid.instances), rule.margin
    above = Fraction(b - c, n) - d
    if above <= 0:
        return False, False
    with localcontext(prec=60):
        # The chance p01 that fits best where p10 - p01 = d, from the likelihood equation 2n p^2 + e p + f = 0.
        e, f = (2 * n - b + c) * d - b - c, -c * d * (1 - d)
        root = (decimal(e * e - 8 * n * f)).sqrt()
        p01 = (root - decimal(e)) / (4 * n)
        variance = (2 * p01 + decimal(d * (1 - d))) * n
        score = decimal(above * n) - z * max(variance, Decimal(0)).sqrt()
    return score > 0, abs(score) < Decimal("1e-7")


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


# Tallies: {group: (passed, assessed, requested)}

Counts = dict[str, tuple[int, int, int]]


def tally(counts: Mapping[str, tuple[int, ...]]) -> Counts:
    if not counts or any(len(found) not in (2, 3) for found in counts.values()):
        raise Refused("MixError")
    full = {group: tuple(found) if len(found) == 3 else (*found, found[-1]) for group, found in counts.items()}
    if any(not 0 <= x <= n <= asked for x, n, asked in full.values()):
        raise Refused("MixError", "InputError")
    if any(number >= 10**18 for found in full.values() for number in found):
        raise Refused("InputError")
    return full  # type: ignore[return-value]


def observed(t: Counts) -> Fraction:
    assessed = sum(n for _, n, _ in t.values())
    if not assessed:
        raise Refused("CoverageError")
    return Fraction(sum(x for x, _, _ in t.values()), assessed)


def mix(t: Counts) -> dict[str, Fraction]:
    observed(t)
    return {group: Fraction(n, sum(n for _, n, _ in t.values())) for group, (_, n, _) in t.items()}


def rates(t: Counts) -> dict[str, Fraction]:
    if any(not n for _, n, _ in t.values()):
        raise Refused("MixError")
    return {group: Fraction(x, n) for group, (x, n, _) in t.items()}


def assessed_whole(*tallies: Counts) -> set[str]:
    """Why a point would be a guess: a group without a rate, or requests without a verdict."""
    kinds = set()
    if any(not n for t in tallies for _, n, _ in t.values()):
        kinds.add("MixError")
    if any(n < asked for t in tallies for _, n, asked in t.values()):
        kinds.add("CoverageError")
    return kinds


def standardised(t: Counts, weights: Mapping[str, Fraction]) -> Fraction:
    kinds = assessed_whole(t)
    if set(weights) != set(t) or sum(weights.values()) != 1 or any(w < 0 for w in weights.values()):
        kinds.add("MixError")
    if kinds:
        raise Refused(*kinds)
    found = rates(t)
    return sum((w * found[group] for group, w in weights.items()), Fraction(0))


def both(a: Counts, b: Counts) -> None:
    kinds = assessed_whole(a, b) | ({"MixError"} if set(a) != set(b) else set())
    if kinds:
        raise Refused(*kinds)


def decomposition(before: Counts, after: Counts) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    """Per group, the mean over the two orders of changing rates first or mix first: rate part, mix part."""
    both(before, after)
    (r0, r1), (w0, w1) = map(rates, (before, after)), map(mix, (before, after))
    rate, part = {}, {}
    for g in before:
        rate_first = w0[g] * (r1[g] - r0[g]), r1[g] * (w1[g] - w0[g])
        mix_first = w1[g] * (r1[g] - r0[g]), r0[g] * (w1[g] - w0[g])
        rate[g], part[g] = (rate_first[0] + mix_first[0]) / 2, (rate_first[1] + mix_first[1]) / 2
    return rate, part


def mixes(groups: Sequence[str], parts: int = 2) -> Iterator[dict[str, Fraction]]:
    """Every mix in halves (or the like), all of the weight in one group among them."""
    for drawn in itertools.combinations_with_replacement(groups, parts):
        yield {group: Fraction(drawn.count(group), parts) for group in groups}


def dominates(a: Counts, b: Counts) -> bool:
    both(a, b)
    moves = [standardised(a, w) - standardised(b, w) for w in mixes(list(a))]
    return all(move >= 0 for move in moves) and any(move > 0 for move in moves)


def reverses(before: Counts, after: Counts) -> bool:
    """The observed rate moves one way, no group moves that way, and one moves the other."""
    both(before, after)
    change = observed(after) - observed(before)
    r0, r1 = rates(before), rates(after)
    moves = [r1[g] - r0[g] for g in before]
    return change != 0 and all(move * change <= 0 for move in moves) and any(move * change < 0 for move in moves)


def flip(a: Counts, b: Counts) -> dict[str, Fraction] | None:
    """For two groups, the tie between two mixes that order a and b differently: on a straight line, so by its two ends."""
    both(a, b)
    if len(a) != 2:
        raise Refused("MixError")
    one, two = sorted(a)
    at_two, at_one = (
        standardised(a, w) - standardised(b, w) for w in ({one: Fraction(0), two: Fraction(1)}, {one: Fraction(1), two: Fraction(0)})
    )
    if not (at_one > 0 > at_two or at_one < 0 < at_two):
        return None
    share = at_two / (at_two - at_one)
    return {one: share, two: 1 - share}


def filled(t: Counts) -> Iterator[Counts]:
    """Every completion: how many of the unassessed of each group would have passed."""
    groups = list(t)
    for more in itertools.product(*(range(asked - n + 1) for _, n, asked in t.values())):
        yield {g: (t[g][0] + extra, t[g][2], t[g][2]) for g, extra in zip(groups, more, strict=True)}

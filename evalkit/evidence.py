"""How sure is a report: what missing cells could change, and how far the counts could move by chance. Tables and sentences.

The numbers come from ``bounds`` and ``uncertainty``; each stands beside a sentence of what it means and what it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ._exact import decimal, percent, points
from .bounds import (
    Bounds,
    Decided,
    Unavailable,
    change_bounds,
    decided,
    dropping_missing,
    key_bounds,
    observed_bounds,
    rerun_rows,
    standardised_bounds,
)
from .campaign import Campaign, Instances
from .decide import NO_INCUMBENT, PROMOTE, UNDECIDED, Decision, ReleaseRule
from .draw import Estimate, Picture
from .draw import intervals as draw_intervals
from .errors import EvalkitError, plain
from .reductions import Reduction, name_of
from .reweighting import Comparison, Reference
from .show import Shown, joined, sentence, table
from .show import picture as show_picture
from .uncertainty import (
    Interval,
    clustered_wilson,
    false_promotion,
    holm,
    mover,
    mover_difference,
    paired,
    pooled_chances,
    selection_stability,
    wilson,
)

__all__ = ["chance", "compared", "could_change", "intervals", "mix_coverage", "mix_intervals", "picture", "rerun", "stability"]

_MOST_DRAWN = 20_000_000  # instances drawn for one table, so that a large campaign is not a long wait
RERUN_MIME = "application/vnd.evalkit.rerun+json"


def could_change(campaign: Campaign, rule: ReleaseRule, decision: Decision) -> Shown:
    """Worst and best case over all completions of the missing cells, and whether they could change the verdict."""
    if all(s.coverage.complete for s in decision.standings):
        return sentence("No planned cell is missing, so nothing that is missing can change the verdict.")
    answer = decided(campaign, rule, incumbent=decision.incumbent)
    rows = []
    for s in decision.standings:
        view = campaign.of(s.candidate, rule.count_as_fail)
        ends = key_bounds(rule.key, view)
        cases = [str(ends)] * 2 if isinstance(ends, Unavailable) else [", ".join(map(_number, key)) for key in (ends.low, ends.high)]
        observed = int((view.passed + view.failed).sum())
        rows.append([s.candidate, *cases, f"{observed} of {view.cells}", decimal(dropping_missing(view)) if observed else "–"])
    waits = []
    if isinstance(answer, Decided) and answer.decided and decision.verdict == UNDECIDED and rule.coverage == "complete":
        waits = [
            'This rule asks for complete coverage, so it waits for the cells all the same; a rule with "coverage": "decided" would not.'
        ]
    instead = _instead(answer, decision)
    if instead:
        names = " or ".join(map(plain, instead))
        waits = [f"The rule ranks complete candidates only: with its missing cells run, {names} could be promoted instead."]
    key = ", ".join(map(name_of, rule.key))
    shown = table(["candidate", f"worst case of {key}", "best case", "observed cells", "mean if the missing are dropped"], rows)
    return joined(
        sentence(str(answer), *waits),
        shown,
        sentence("Worst case: every missing cell fails. Best case: every one passes. The last column is never used for a decision."),
    )


def _instead(answer: Decided | Unavailable, decision: Decision) -> list[str]:
    """Who could be promoted, with all cells in, in the place of the challenger that is promoted now."""
    if decision.verdict != PROMOTE or isinstance(answer, Unavailable):
        return []
    return [p.candidate for p in answer.promotable if p.candidate not in decision.challenger]


def _number(value: int | Fraction) -> str:
    return str(value) if Fraction(value).denominator == 1 else decimal(value)


def rerun(campaign: Campaign, rule: ReleaseRule, decision: Decision) -> Shown:
    """Every missing cell by name, its reason, and whether it could change the verdict; the rows of ``rerun.csv`` travel along."""
    instead: list[str] = []
    if decision.verdict == PROMOTE and not all(s.coverage.complete for s in decision.standings):
        instead = _instead(decided(campaign, rule, incumbent=decision.incumbent), decision)
    rows = [
        [c, i, r, reason, "yes" if c in instead else could, campaign.details.get((c, i, r), "")]
        for c, i, r, reason, could in rerun_rows(campaign, rule, incumbent=decision.incumbent)
    ]
    header = ["candidate", "instance", "repetition", "reason", "could_change_verdict", "detail"]
    shown = sentence("rerun.csv has no rows.")
    if rows:
        meaning = "A cell marked no leaves the verdict as it is, whatever it says; a rule of complete coverage asks for it all the same."
        told = len(header) if any(row[-1] for row in rows) else -1  # no column of blanks
        names = [name.replace("_", " ") for name in header[:told]]
        shown = joined(table(names, [row[:told] for row in rows]), sentence(meaning))
    return Shown(shown.html, shown.text, {"header": header, "rows": rows}, RERUN_MIME)


def _ends(found: Interval | Unavailable) -> str:
    return str(found) if isinstance(found, Unavailable) else f"{found.low:.1%} to {found.high:.1%}"


def _points(found: Interval | Unavailable) -> str:
    return str(found) if isinstance(found, Unavailable) else f"{100 * found.low:+.1f} to {100 * found.high:+.1f} points"


def _resolved(view: Instances) -> int:
    return int((view.passed == view.planned).sum())


def _interval(campaign: Campaign, view: Instances) -> Interval | Unavailable:
    """Wilson for the share of resolved instances; over clusters where the campaign declares them."""
    resolved = view.passed == view.planned
    if campaign.clusters is None:
        return wilson(int(resolved.sum()), len(view.ids))
    sums: dict[str, list[int]] = {}
    for cluster, one in zip(campaign.clusters, resolved.tolist(), strict=True):
        entry = sums.setdefault(cluster, [0, 0])
        entry[0] += one
        entry[1] += 1
    return clustered_wilson([passed for passed, _ in sums.values()], [size for _, size in sums.values()])


def intervals(campaign: Campaign, rule: ReleaseRule, decision: Decision) -> Shown:
    """Resolved instances of every complete candidate with their 95 % interval."""
    rows = []
    for s in decision.standings:
        view = campaign.of(s.candidate, rule.count_as_fail)
        found = _interval(campaign, view) if view.complete else None
        words = "–" if found is None else _ends(found)
        rows.append([s.candidate, f"{_resolved(view)} of {len(view.ids)}" if view.complete else "–", words])
    unit = "clusters" if campaign.clusters else "instances"
    return joined(
        table(
            ["candidate", "resolved instances", f"95% interval of their share ({'Wilson, clustered' if campaign.clusters else 'Wilson'})"],
            rows,
        ),
        sentence(
            f"The unit is the {unit[:-1]}: repetitions are folded first. If other {unit} were drawn from the same source, the share could "
            "well lie anywhere in its interval. Two intervals that overlap do not show that two candidates are alike."
        ),
    )


def picture(campaign: Campaign, rule: ReleaseRule, decision: Decision) -> Picture | Shown:
    """The resolved instances of up to 13 candidates with their 95 % intervals; an incomplete one shows worst to best case."""
    rows = []
    for s in decision.standings[:13]:
        view = campaign.of(s.candidate, rule.count_as_fail)
        n = len(view.ids)
        found = _interval(campaign, view) if view.complete else None
        least = Fraction(_resolved(view), n)
        most = least + Fraction(int(((view.failed == 0) & (view.passed < view.planned)).sum()), n)
        counts = f"{_resolved(view)} of {n}" if view.complete else str(s.coverage)
        low, high = (found.low, found.high) if isinstance(found, Interval) else (None, None)
        note = "" if low is not None else str(found) if found else "incomplete"
        rows.append(
            Estimate(s.candidate, counts, least if view.complete else None, low, high, note, None if view.complete else (least, most))
        )
    unit = "clusters" if campaign.clusters else "instances"
    title = f"{len(campaign.instances)} instances leave this much room"
    return show_picture(lambda: draw_intervals(rows, title=title, unit=f"share of resolved instances, 95% Wilson interval over {unit}"))


def compared(campaign: Campaign, rule: ReleaseRule, decision: Decision) -> Shown:
    """Every complete challenger against the incumbent on the same instances: repaired, regressed, difference, test."""
    if decision.incumbent == NO_INCUMBENT:
        return sentence("There is no incumbent to compare with.")
    theirs = campaign.of(decision.incumbent, rule.count_as_fail)
    ours = [campaign.of(s.candidate, rule.count_as_fail) for s in decision.standings if s.candidate != decision.incumbent]
    complete = [view for view in ours if view.complete]
    if not theirs.complete or not complete:
        return sentence("No two complete candidates to compare.")
    pairs = [paired(view, theirs, at_least=len(campaign.repetitions), clusters=campaign.clusters) for view in complete]
    raised = holm([pair.test.value for pair in pairs])
    rows = [
        [
            p.candidate,
            len(p.repaired),
            len(p.regressed),
            f"{points(p.difference)} points",
            _points(p.interval),
            f"{float(p.test.value):.3g}",
            f"{float(h):.3g}",
        ]
        for p, h in zip(pairs, raised, strict=True)
    ]
    methods = dict.fromkeys([*(p.interval.method for p in pairs if isinstance(p.interval, Interval)), *(p.test.method for p in pairs)])
    header = [f"against {decision.incumbent}", "repaired", "regressed", "difference", "95% interval", "p", "p, Holm"]
    names = [
        f"{plain(p.candidate)} {word}: {', '.join(map(plain, ids[:40]))}{' …' if len(ids) > 40 else ''}."
        for p in pairs
        if decision.challenger == (p.candidate,)
        for word, ids in (("repaired", p.repaired), ("regressed", p.regressed))
        if ids
    ]
    return joined(
        table(header, rows),
        sentence(
            *names,
            f"Methods: {'; '.join(methods)}; Holm over {len(pairs)} comparisons.",
            "Repaired: resolved by the challenger and not by the incumbent; regressed: the other way round. A large p means that these "
            "instances cannot tell the two apart, not that they are alike.",
        ),
    )


def stability(campaign: Campaign, rule: ReleaseRule, decision: Decision) -> Shown:
    """How often each candidate comes first if the instances are drawn again, under the picker and under the rule's key."""
    keys: dict[str, tuple[Reduction, ...]] = {f"picker: {', '.join(map(name_of, decision.picker))}": decision.picker}
    keys[f"rule: {', '.join(map(name_of, rule.key))}"] = rule.key
    resamples = max(1_000, min(10_000, _MOST_DRAWN // len(campaign.instances)))
    found = [selection_stability(campaign, key, count_as_fail=rule.count_as_fail, resamples=resamples) for key in keys.values()]
    gaps = [f"{name} {answer}." for name, answer in zip(keys, found, strict=True) if isinstance(answer, Unavailable)]
    known = {name: answer for name, answer in zip(keys, found, strict=True) if not isinstance(answer, Unavailable)}
    if not known:
        return sentence(*gaps)
    names = list(next(iter(known.values())).wins)
    rows = [[name, *(percent(s.wins.get(name, Fraction(0))) for s in known.values())] for name in names]
    rows.append(["tie for first", *(percent(s.tie) for s in known.values())])
    how = next(iter(known.values()))
    exact = "all resamples, exact" if how.error is None else f"{how.resamples} resamples, seed {how.seed}, error up to {how.error:.3f}"
    return joined(
        table(["comes first alone", *known], rows),
        sentence(
            *gaps,
            f"Instances drawn again with replacement ({how.note}; {exact}). This says how much the choice hangs on these instances; it is "
            "not the probability that a candidate is best.",
        ),
    )


def chance(campaign: Campaign, rule: ReleaseRule, decision: Decision) -> Shown:
    """How many candidates were tried, and how often this gate would promote the best of them if none differed from the incumbent."""
    tried = sum(s.candidate != decision.incumbent for s in decision.standings)
    lead = f"{tried} challenger{'s' if tried > 1 else ''} tried."
    try:
        chances = pooled_chances(campaign, rule.count_as_fail)
        resamples = max(2_000, min(20_000, _MOST_DRAWN // (len(set(chances)) * (tried + 1) * 5)))
        answer = false_promotion(rule, chances, len(campaign.repetitions), tried, resamples=resamples)
    except EvalkitError as gap:
        return sentence(lead, f"How often this gate would promote by chance is unavailable: {gap}")
    if isinstance(answer, Unavailable):
        return sentence(lead, f"How often this gate would promote by chance is {answer}.")
    return sentence(
        f"{lead} If none of them differed from the incumbent, luck alone would put the best of them above it in {answer.share:.0%} of "
        f"campaigns like this one{', before the margin is tested' if rule.margin is not None else ''}: alone at the top in "
        f"{answer.promoted:.1%}, tied with another challenger in {answer.tied:.1%} ({answer.resamples} draws, error up to "
        f"{100 * 1.96 * answer.error:.1f} points).",
        "The model of no difference: on each instance every candidate passes each repetition with that instance's pooled rate, independently.",
        "A rule that asks for any improvement promotes by luck often, on many instances too. A margin makes it rare; fresh instances for the "
        "winner undo the choice among several.",
    )


def mix_coverage(reference: Reference, comparison: Comparison) -> Shown:
    """Assessed of requested, and the worst and best case of each rate over all verdicts that are still missing."""
    pair = comparison.before, comparison.after
    if all(t.assessed == t.requested for t in pair):
        return sentence(
            f"Every request is assessed: {'; '.join(f'{plain(t.period)} {sum(t.assessed)} of {sum(t.requested)}' for t in pair)}."
        )

    def row(name: str, found: Callable[[], Bounds]) -> list[str]:
        try:
            ends = found()
        except EvalkitError as gap:
            return [name, f"unavailable: {gap.found}", "unavailable", "–"]
        return [name, decimal(ends.low), decimal(ends.high), ends.coverage]

    rows = [row(f"{plain(t.period)}, observed", lambda t=t: observed_bounds(t)) for t in pair]  # type: ignore[misc]
    rows += [row(f"{plain(t.period)}, standardised", lambda t=t: standardised_bounds(t, reference)) for t in pair]  # type: ignore[misc]
    rows.append(row("change at the reference mix", lambda: change_bounds(*pair, reference)))
    try:
        sign = change_bounds(*pair, reference).sign
    except EvalkitError:
        sign = None
    direction = {1: "rises", 0: "stays", -1: "falls"}
    verdict = "its direction is not decided" if sign is None else f"the rate {direction[sign]} whatever they are"
    return joined(
        table(["rate", "worst case", "best case", "coverage"], rows),
        sentence(f"Worst case: every request without a verdict fails; best case: every one passes. With the missing verdicts, {verdict}."),
    )


def mix_intervals(reference: Reference, comparison: Comparison) -> Shown:
    """95 % intervals of the standardised rates and of their difference."""
    if comparison.decomposition is None:
        return sentence("Intervals are unavailable for the reason above.")
    pair = comparison.before, comparison.after
    rows = [[t.period, percent(rate or 0), _ends(mover(t, reference))] for t, rate in zip(pair, comparison.standardised, strict=True)]
    first, second = comparison.standardised
    rows.append(["difference", f"{points((second or 0) - (first or 0))} points", _points(mover_difference(*pair, reference))])
    return joined(
        table(["standardised rate", "estimate", "95% interval"], rows),
        sentence(
            "MOVER with Wilson limits. The intervals assume independent requests. Several requests of one user or workflow would make them wider; counts alone cannot show that."
        ),
    )

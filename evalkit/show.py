"""What notebooks show: tables and sentences as HTML and as text, every name escaped.

HTML and not Markdown, since a Markdown cell would read a stranger's name as markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any, TypeVar

from ._exact import as_text, decimal, in_order, percent, percents, points
from .campaign import Campaign
from .decide import KEEP, MET, NO_INCUMBENT, NOT_EVALUATED, NOT_MET, PROMOTE, Condition, Decision, ReleaseRule
from .draw import things
from .errors import EvalkitError, listing, plain
from .records import decision_record, digest_of, mix_record, tallies_digest
from .reductions import name_of, pass_hat
from .reweighting import Comparison, Reference, Tally, dominates, flip_mix, observed_mix, observed_rate, standardise
from .reweighting import group_rates as rates_of

__all__ = [
    "Shown", "conditions", "decomposition", "digests", "dominance", "grid", "group_counts", "group_rates", "joined", "labels", "limits", "mix_digests", "mix_limits", "mix_read", "mix_verdict", "others", "pass_hat_table", "picture", "rates", "read", "review", "sentence", "standings", "table", "verdict",
]  # fmt: skip

T = TypeVar("T")
DECISION_MIME = "application/vnd.evalkit.decision+json"
LETTERS = {"pass": "T", "fail": "F", "absent": "–"}
_MOST_ROWS = 200
_SHORT, _WHOLE, _LONG = 14, 28, 16  # letters: of a head never broken, of one that only a narrow page breaks, of a word that may be broken
_HEAD = 64  # letters of a head before its middle is cut
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?: +[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*")


@dataclass(frozen=True)
class Shown:
    """Something shown, as HTML and as text; a verdict carries its decision record too."""

    html: str
    text: str
    record: Mapping[str, Any] | None = None
    mime: str = DECISION_MIME

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:  # noqa: ARG002
        # JupyterLab shows the first line of a folded output; a blank one gives no answer away.
        bundle: dict[str, Any] = {"text/html": f" \n{self.html}", "text/plain": self.text}
        return bundle if self.record is None else {**bundle, self.mime: self.record}

    def __repr__(self) -> str:
        return self.text


def _marked(text: str) -> str:
    """Text as HTML; right-to-left letters do not reorder the counts beside them."""
    return _RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", escape(text))


def sentence(*texts: str) -> Shown:
    """Sentences, one paragraph each."""
    return Shown("".join(f"<p>{_marked(plain_long(text))}</p>" for text in texts), "\n".join(map(plain_long, texts)))


def joined(*parts: Shown) -> Shown:
    """Several things shown as one."""
    return Shown("".join(part.html for part in parts), "\n".join(part.text for part in parts))


def table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> Shown:
    """A table; the first column heads its row, and columns of numbers and counts align right."""
    header = [_head(name) for name in header]
    cells = [[plain_long(str(value)) for value in row] for row in rows]
    kept, hidden = [[_head(row[0]), *row[1:]] for row in cells[:_MOST_ROWS]], len(cells) - _MOST_ROWS
    right = [bool(kept) and all(row[i][:1] in "0123456789+-–" and row[i] for row in kept) for i in range(len(header))]
    more = f"{hidden} more rows; decision.json counts them all" if hidden > 0 else ""

    def look(text: str, column: int, head: bool = False) -> str:
        """Where a text stands, and where it may be broken: within a word only if that is a long one."""
        style = [f"text-align:{'right' if right[column] else 'left'}"]
        if not head and not column and len(text) <= _SHORT:
            style.append("white-space:pre")
        elif not head and (right[column] or (not column and len(text) <= _WHOLE)):
            style.append("white-space:nowrap")
        longest = max(map(len, re.split(r"[\s-]+", text)))
        style += ["overflow-wrap:anywhere"] * (longest > _LONG) + ["font-size:90%"] * (longest >= _HEAD)
        return f'style="{";".join(style)}"'

    head = "".join(f'<th scope="col" {look(name, i, head=True)}>{_with_its_number(_marked(name))}</th>' for i, name in enumerate(header))
    body = "".join(
        "<tr>"
        + f'<th scope="row" {look(row[0], 0)}>{_marked(row[0])}</th>'
        + "".join(f"<td {look(value, i)}>{_marked(value)}</td>" for i, value in enumerate(row[1:], 1))
        + "</tr>"
        for row in kept
    )
    html = f'<div class="table"><table>{f"<caption>{escape(caption)}</caption>" if caption else ""}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    widths = [max(len(line[i]) for line in [list(header), *kept]) for i in range(len(header))]
    lines = [
        "  ".join(value.rjust(w) if flag else value.ljust(w) for value, w, flag in zip(line, widths, right, strict=True)).rstrip()
        for line in [list(header), *kept]
    ]
    return Shown(html + (f"<p>{more}</p>" if more else ""), "\n".join(([caption] if caption else []) + lines + ([more] if more else [])))


def _head(text: str) -> str:
    """The head of a row or a column on one line; a stranger's long name keeps its two ends, by which it differs from others."""
    shown = plain_long(text)
    return shown if len(shown) <= _HEAD else f"{shown[: _HEAD // 2]}…{shown[-(_HEAD // 2 - 1) :]}"


def _with_its_number(html: str) -> str:
    """No line ends before the number that a head ends with: "rep 0"."""
    return re.sub(r" (?=\d+$)", "&nbsp;", html)


def plain_long(text: str) -> str:
    """One line of printable text, cut beyond 700 characters."""
    shown = "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode("ascii") for ch in text)
    return shown if len(shown) <= 700 else f"{shown[:699]}…"


def grid(campaign: Campaign) -> Shown:
    """Every raw cell: T passed, F failed, – absent, or the reason why there is no verdict."""
    header = ["instance", *(f"{plain(c)} rep {plain(r)}" for c in campaign.candidates for r in campaign.repetitions)]
    rows = (
        [i, *(LETTERS.get(word, word) for c in campaign.candidates for r in campaign.repetitions if (word := campaign.outcome(c, i, r)))]
        for i in campaign.instances
    )
    return table(header, rows)


# The release report


def _names(names: Sequence[str]) -> str:
    return " and ".join(map(plain, names)) if names else "nobody"


def headline(decision: Decision) -> str:
    """The verdict in one line."""
    challenger = _names(decision.challenger)
    if decision.verdict == PROMOTE:
        return f"PROMOTE: {challenger} " + (
            "may be released" if decision.incumbent == NO_INCUMBENT else f"may replace {plain(decision.incumbent)}"
        )
    if decision.verdict == KEEP:
        return (
            "KEEP: nothing is released" if decision.incumbent == NO_INCUMBENT else f"KEEP the incumbent: {plain(decision.incumbent)} stays"
        )
    return "UNDECIDED: nothing is released yet"


DEMONSTRATION = "Demonstration data: the kit's published fixture, not a measurement of yours."
UNBOUND = "Reference not bound to the data: the data do not name the grouping rule and grader version that the reference names."


def verdict(campaign: Campaign, rule: ReleaseRule, decision: Decision, *, demonstration: bool, bound: bool) -> Shown:
    """The verdict with its reasons; its output carries the decision record."""
    notes = [] if campaign.declared else ["No inventory was declared: instances that nobody ran are invisible."]
    notes += [] if bound else [UNBOUND]
    return _headed(headline(decision), decision.reasons, notes, decision.verdict, demonstration, decision_record(campaign, rule, decision))


def _headed(title: str, reasons: Sequence[str], notes: Sequence[str], word: str, demonstration: bool, record: Mapping[str, Any]) -> Shown:
    items = [plain_long(reason) for reason in reasons]
    html = (
        (f'<p class="demonstration"><em>{DEMONSTRATION}</em></p>' if demonstration else "")
        + f'<p class="verdict {word.split()[0]}"><strong>{_marked(title)}</strong></p>'
        + f"<ul>{''.join(f'<li>{_marked(item)}</li>' for item in items)}</ul>"
        + "".join(f"<p>{_marked(note)}</p>" for note in notes)
    )
    lines = ([DEMONSTRATION] if demonstration else []) + [title, *(f"- {item}" for item in items), *notes]
    return Shown(html, "\n".join(lines), record)


def labels(decision: Decision) -> Shown:
    """The three labels: they may agree, and a reader should not have to infer that they do."""
    means = {s.candidate: s.mean for s in decision.standings}
    counts = {s.candidate: s for s in decision.standings}

    def mean(names: Sequence[str]) -> str:
        return "; ".join(f"{plain(n)} {counts[n].passed} of {counts[n].coverage.planned} cells ({decimal(means[n] or 0)})" for n in names)

    return table(
        ["label", "answer", "what decided"],
        [
            ["highest descriptive mean", _names(decision.highest_mean), mean(decision.highest_mean)],
            [
                "winner under the rule's key",
                _names(decision.winner),
                "; ".join(f"{plain(n)} {', '.join(counts[n].counts) or 'whatever its missing cells say'}" for n in decision.winner),
            ],
            ["verdict", decision.verdict + f" {_names(decision.challenger)}" * (decision.verdict == PROMOTE), _withheld(decision)],
        ],
    )


def conditions_met(decision: Decision) -> str:
    """How many of the conditions are met, in words."""
    met = sum(c.state == MET for c in decision.conditions)
    return f"{met} of {len(decision.conditions)} conditions met"


def _withheld(decision: Decision) -> str:
    """The conditions that are not met or not evaluated, and the candidates that are not ranked, by name."""
    gaps = {state: [c.name for c in decision.conditions if c.state == state] for state in (NOT_MET, NOT_EVALUATED)}
    gaps["not ranked"] = [s.candidate for s in decision.standings if s.why_unplaced]
    return "; ".join([conditions_met(decision), *(f"{gap}: {listing(names)}" for gap, names in gaps.items() if names)])


def standings(rule: ReleaseRule, decision: Decision) -> Shown:
    """Every candidate: place, the rule's counts, the mean, coverage; the incomplete stay visible, without a place."""
    keys = [name_of(r) for r in rule.key]
    means = "cell_mean" not in keys  # the descriptive mean, unless the key shows it already
    rows = [
        [
            s.candidate + (" (incumbent)" if s.candidate == decision.incumbent else ""),
            s.place or "–",
            *(s.counts or ["–"] * len(keys)),
            *([f"{s.passed} of {s.coverage.planned} cells" + ("" if s.mean is None else f" ({decimal(s.mean)})")] if means else []),
            str(s.coverage) if not s.why_unplaced or not s.coverage.complete else s.why_unplaced,
        ]
        for s in decision.standings
    ]
    heads = [f"{things(r)} ({name_of(r)})" for r in rule.key]
    return table(["candidate", "place", *heads, *(["passed"] if means else []), "coverage"], rows)


def conditions(found: Sequence[Condition]) -> Shown:
    """The conditions one by one, with the numbers that decided each."""
    if not found:
        return sentence("No blocking group was declared.")
    shown = table(["condition", "state", "numbers"], [[c.name, c.state, c.numbers] for c in found])
    return Shown(re.sub(rf">({NOT_MET}|{NOT_EVALUATED})</td>", r"><strong>\1</strong></td>", shown.html), shown.text)


def others(decision: Decision) -> Shown:
    """The conditions that the verdict's reasons do not tell: those that are met where others withheld it."""
    met = [c for c in decision.conditions if c.state == MET]
    words = sentence(
        f"{conditions_met(decision)}; the verdict above tells the numbers of {'each' if decision.verdict == PROMOTE else 'the rest'}."
    )
    return words if decision.verdict == PROMOTE or not met else joined(words, conditions(met))


def pass_hat_table(campaign: Campaign, rule: ReleaseRule, decision: Decision) -> Shown:
    """pass^k of every complete candidate, from the cell mean (k = 1) to the fail-closed share (k = R)."""
    spread = len(campaign.repetitions)
    ks = range(1, spread + 1) if spread <= 8 else sorted({1, 2, 4, 8, spread // 2, spread})
    rows = []
    for s in decision.standings:
        view = campaign.of(s.candidate, rule.count_as_fail)
        rows.append([s.candidate, *(decimal(Fraction(pass_hat(k)(view))) if view.complete else "–" for k in ks)])
    return table(["candidate", *(f"pass^{k}" for k in ks)], rows)


def _by_group(campaign: Campaign, candidate: str, rule: ReleaseRule) -> dict[str, tuple[int, int, int]]:
    view = campaign.of(candidate, rule.count_as_fail)
    counts: dict[str, tuple[int, int, int]] = {}
    for group, passed, failed, planned in zip(
        campaign.groups or (), view.passed.tolist(), view.failed.tolist(), view.planned.tolist(), strict=True
    ):
        p, a, n = counts.get(group, (0, 0, 0))
        counts[group] = (p + passed, a + passed + failed, n + planned)
    return counts


def group_counts(campaign: Campaign, rule: ReleaseRule, decision: Decision, reference: Reference | None = None) -> Shown:
    """Passing of planned cells per group, and, with a reference, the observed rate beside the standardised one."""
    if campaign.groups is None:
        return sentence("The campaign names no groups.")
    tallies = {s.candidate: Tally.of(s.candidate, _by_group(campaign, s.candidate, rule)) for s in decision.standings}
    groups = next(iter(tallies.values())).groups
    weights = reference.weights if reference else {}
    rows = [
        [
            group + (f" (weight {_weight(weights[group])})" if group in weights else ""),
            *(
                f"{t.passed[i]} of {t.requested[i]}" + (f" ({t.assessed[i]} assessed)" if t.assessed[i] < t.requested[i] else "")
                for t in tallies.values()
            ),
        ]
        for i, group in enumerate(groups)
    ]
    whole = all(t.assessed == t.requested for t in tallies.values())
    if whole:
        rows.append(["observed rate", *(percent(observed_rate(t)) for t in tallies.values())])
    if reference and whole:
        rows.append(["standardised rate", *(percent(standardise(t, reference)) for t in tallies.values())])
    rows.insert(0, ["passing cells", *tallies])
    if len(tallies) > len(groups):  # the longer side runs down the page
        rows = [list(column) for column in zip(*rows, strict=True)]
    return table(rows[0], rows[1:])


def review(decision: Decision) -> Shown:
    """Winner key, release rule and reported summary side by side, with the unit of each."""
    shown = table(["item", "reduction", "unit"], decision.review.rows)
    alike = decision.picked == decision.winner
    both = f"Here both choose {_names(decision.winner)}."
    each = f"This picker chooses {_names(decision.picked)}; the rule's key chooses {_names(decision.winner)}."
    note = decision.review.note
    flagged = note if decision.review.agree or alike else f"Flagged: {note[:1].lower()}{note[1:]}"
    return joined(shown, sentence(flagged, both if alike else each))


def read(campaign: Campaign) -> Shown:
    """What was read: the planned grid, the rows, and what the data say about themselves."""
    grid = f"{len(campaign.candidates)} candidates x {len(campaign.instances)} instances x {len(campaign.repetitions)} repetitions"
    return sentence(
        f"{grid} = {campaign.codes.size} planned cells.", *campaign.notes, *(f"{key}: {value}" for key, value in campaign.bindings.items())
    )


def digests(campaign: Campaign, rule: ReleaseRule) -> Shown:
    """Who owns the rule, and the digests that bind this decision."""
    return table(
        ["record", "value"],
        [
            ["release rule", rule.rule_id],
            ["its owner, who may act on it", rule.owner],
            ["its purpose", rule.purpose],
            ["SHA-256 of the rule", digest_of(rule)],
            ["SHA-256 of the campaign's content", campaign.digest],
        ],
    )


def limits(campaign: Campaign, rule: ReleaseRule) -> Shown:
    """What this result does not show."""
    lines = [
        "These instances are the ones that were run; nothing here says how other instances would go.",
        "A winner is not a release: the owner of the rule acts on it, and signatures are recorded, not verified.",
    ]
    if len(campaign.repetitions) == 1:
        lines.insert(0, "One repetition per instance: the rule cannot see instability, since fail-closed and mean count the same cells.")
    if rule.count_as_fail:
        lines.append("The rule counts these reasons as fail: " + ", ".join(rule.count_as_fail) + ".")
    return sentence(*lines)


# The mix report


def mix_verdict(tallies: Mapping[str, Tally], reference: Reference, comparison: Comparison, *, demonstration: bool) -> Shown:
    """Compared or unavailable, with the rates; its output carries the record."""
    first, second = comparison.standardised
    before, after = plain(comparison.before.period), plain(comparison.after.period)
    if first is None or second is None:
        title = f"UNAVAILABLE: {before} and {after} cannot be compared at the reference mix"
    else:
        o1, o2 = (percent(r) for r in comparison.observed if r is not None)
        title = f"COMPARED: observed {o1} to {o2}; at the reference mix {' to '.join(percents(first, second))}"
    notes = [] if comparison.bound else [UNBOUND]
    return _headed(title, comparison.reasons, notes, comparison.verdict, demonstration, mix_record(tallies, reference, comparison))


def rates(reference: Reference, comparison: Comparison) -> Shown:
    """Observed beside standardised; a missing one says so."""

    def row(name: str, pair: Sequence[Fraction | None]) -> list[str]:
        first, second = pair
        change = "unavailable" if first is None or second is None else f"{points(second - first)} points"
        return [name, *("unavailable" if r is None else percent(r) for r in pair), change]

    return table(
        ["rate", comparison.before.period, comparison.after.period, "change"],
        [
            row("observed, of assessed requests", comparison.observed),
            row(f"standardised to {reference.reference_id}", comparison.standardised),
            row("standardised to equal weights", comparison.equal),
        ],
    )


def dominance(comparison: Comparison) -> Shown:
    """Which period is ahead at every possible mix, or, for two groups, at which mix the order flips."""
    if comparison.decomposition is None:
        return sentence("The order over all mixes is unavailable for the reason above.")
    pair = comparison.before, comparison.after
    for first, second in (pair, pair[::-1]):
        if dominates(first, second):
            return sentence(
                f"At every possible mix of these groups {plain(first.period)} passes as often as {plain(second.period)}, or more often."
            )
    if rates_of(pair[0]) == rates_of(pair[1]):
        return sentence("At every possible mix of these groups the two periods tie.")
    flip = flip_mix(*pair) if len(pair[0].groups) == 2 else None
    if flip is None:
        return sentence("Neither period is ahead at every mix: the answer depends on the reference.")
    shares = ", ".join(f"{plain(group)} {as_text(share)}" for group, share in flip.items())
    return sentence(f"Neither period is ahead at every mix: they tie at the mix {shares}, and their order flips there.")


def mix_read(tallies: Mapping[str, Tally]) -> Shown:
    """What was read: every period's groups, and its requests requested, assessed and passed in all."""
    rows = [[t.period, len(t.groups), sum(t.requested), sum(t.assessed), sum(t.passed)] for t in tallies.values()]
    return table(["period", "groups", "requested", "assessed", "passed"], rows)


def group_rates(reference: Reference, comparison: Comparison) -> Shown:
    """Per group: the weight, the share of the traffic, and passed of assessed requests, in both periods."""
    pair = comparison.before, comparison.after
    groups = sorted(in_order({*reference.weights, *pair[0].groups, *pair[1].groups}), key=lambda g: -reference.weights.get(g, Fraction(0)))
    rows = []
    for group in groups:
        row = [group, _weight(reference.weights[group]) if group in reference.weights else "not in the reference"]
        for t in pair:
            if group not in t.groups:
                row += ["absent", "absent"]
                continue
            i = t.groups.index(group)
            share = percent(observed_mix(t)[group]) if sum(t.assessed) else "–"
            rate = f" = {percent(Fraction(t.passed[i], t.assessed[i]))}" if t.assessed[i] else ""
            row += [
                share,
                f"{t.passed[i]} of {t.assessed[i]}{rate}" + (f" ({t.requested[i]} requested)" if t.assessed[i] < t.requested[i] else ""),
            ]
        rows.append(row)
    return table(["group", "reference weight", *(f"{what}, {t.period}" for t in pair for what in ("share", "passed"))], rows)


def _weight(share: Fraction) -> str:
    """A weight as it was declared, where that is short; the record holds it exactly."""
    return as_text(share) if share.denominator <= 20 else percent(share)


def decomposition(comparison: Comparison) -> Shown:
    """Kitagawa's split of the observed change, per group; the parts add up exactly."""
    d = comparison.decomposition
    if d is None:
        return sentence("The decomposition is unavailable for the reason above.")
    rows = [[group, points(d.rate_by_group[group]), points(d.mix_by_group[group])] for group in d.rate_by_group]
    rows.append(["all groups", points(d.rate_effect), points(d.mix_effect)])
    shown = table(["group", "rate effect, points", "mix effect, points"], rows)
    words = sentence(
        f"Rate effect {points(d.rate_effect)} + mix effect {points(d.mix_effect)} = change {points(d.change)} points of the observed rate.",
        "Convention: Kitagawa's two-fold split, each change weighed by the mean of the two periods. It is arithmetic, not cause.",
    )
    return Shown(shown.html + words.html, f"{shown.text}\n{words.text}")


def picture(draw: Callable[[], T]) -> T | Shown:
    """A picture, or the sentence why there is none to draw."""
    try:
        return draw()
    except EvalkitError as gap:
        return sentence(f"No picture: {gap}")


def mix_digests(tallies: Mapping[str, Tally], reference: Reference) -> Shown:
    """The reference with its purpose, and the digests that bind this comparison."""
    return table(
        ["record", "value"],
        [
            ["reference", reference.reference_id],
            ["its purpose", reference.purpose or "not stated"],
            ["grouping rule", reference.grouping_rule],
            ["grader version", reference.grader_version],
            ["SHA-256 of the reference", digest_of(reference)],
            ["SHA-256 of the tallies' content", tallies_digest(tallies)],
        ],
    )


def mix_limits(comparison: Comparison) -> Shown:
    """What this comparison does not show."""
    lines = [
        "Standardising is arithmetic on the observed group rates; it is not a replay of the old requests.",
        "A group can hide another shift: requests inside one may be easier in one period than in the other.",
        "Weights say how much traffic a group has, not what an error costs; blocking groups are decided outside them.",
    ]
    if not comparison.bound:
        lines.append("The counts do not name their grouping rule and grader version, so nothing shows that the reference fits them.")
    return sentence(*lines)

"""Properties over generated campaigns and tallies, good and bad; and a small model that must agree with the kit (the whole one: test_model).

``make test-long`` tries ten times as many examples.
"""

import itertools
import json
import math
import os
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from evalkit import (
    CoverageError,
    EvalkitError,
    Reference,
    ReleaseRule,
    Tally,
    at_least,
    cell_mean,
    decide,
    decompose,
    dominates,
    fail_closed,
    flip_mix,
    group_rates,
    observed_mix,
    observed_rate,
    pass_at,
    pass_hat,
    passing_cells,
    rank,
    rank_key,
    read_reference,
    read_rule,
    reverses,
    standardise,
)
from evalkit._exact import in_order, measurement, natural, rational
from evalkit.bounds import Unavailable, change_bounds, key_bounds, observed_bounds, reduction_bounds, standardised_bounds
from evalkit.campaign import CODE, OUTCOMES, Campaign, Column, from_histogram, outcome_code
from evalkit.counterexample import NoDisagreement, smallest_disagreement
from evalkit.decide import KEEP, PROMOTE, UNDECIDED
from evalkit.errors import plain
from evalkit.records import canonical, decision_record, reference_text
from evalkit.sources import table

times = 10 if "EVALKIT_LONG" in os.environ else 1
few = settings(max_examples=30 * times, deadline=None, suppress_health_check=[HealthCheck.too_slow])
many = settings(few, max_examples=80 * times)

RULE = ReleaseRule("r", "o", "p", fail_closed, (cell_mean,))
names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6).filter(
    lambda s: s == s.strip() and s != "none" and "\ufeff" not in s
)
words = st.sampled_from(["pass"] * 4 + ["fail"] * 4 + ["timeout", "absent", "error"])


@st.composite
def grids(draw, outcomes=words, most=4):
    """{(candidate, instance, repetition): outcome} of a full planned grid, with strangers' names."""
    sizes = draw(st.integers(2, most)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    axes = [draw(st.lists(names, min_size=size, max_size=size, unique=True)) for size in sizes]
    return axes, {(c, i, r): draw(outcomes) for c in axes[0] for i in axes[1] for r in axes[2]}


def campaign_of(axes, cells):
    """Straight from the codes, past every reader."""
    ordered = [in_order(axis) for axis in axes]
    codes = [[[CODE[cells[c, i, r]] for i in ordered[1]] for c in ordered[0]] for r in ordered[2]]
    return Campaign(*map(tuple, ordered), np.array(codes, np.uint8))


def csv_of(rows, header=("candidate", "instance", "repetition", "outcome")):
    quoted = (",".join('"' + field.replace('"', '""') + '"' for field in row) for row in (header, *rows))
    return "\r\n".join(quoted).encode()


# Order and names


@few
@given(grids(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_columns_changes_neither_digest_nor_record(generated, rng):
    axes, cells = generated
    rows = [[*cell, word] for cell, word in cells.items()]
    order = rng.sample(range(4), 4)
    header = ["candidate", "instance", "repetition", "outcome"]
    shuffled = [[row[k] for k in order] for row in rng.sample(rows, len(rows))]
    one, other = table.campaign(csv_of(rows)), table.campaign(csv_of(shuffled, [header[k] for k in order]))
    assert one.digest == other.digest == campaign_of(axes, cells).digest
    texts = {canonical(decision_record(c, RULE, decide(c, RULE, incumbent=axes[0][0]))) for c in (one, other)}
    assert len(texts) == 1


@few
@given(grids())
def test_new_names_change_names_and_nothing_else(generated):
    axes, cells = generated
    renamed = [{name: f"new-{len(axis) - n}" for n, name in enumerate(axis)} for axis in axes]
    again = {tuple(new[name] for new, name in zip(renamed, cell, strict=True)): word for cell, word in cells.items()}
    before = decide(campaign_of(axes, cells), RULE, incumbent=axes[0][0])
    after = decide(campaign_of([list(new.values()) for new in renamed], again), RULE, incumbent=renamed[0][axes[0][0]])
    assert before.verdict == after.verdict
    assert {renamed[0][name] for name in before.winner} == set(after.winner)
    assert {renamed[0][s.candidate]: (s.place, s.key) for s in before.standings} == {s.candidate: (s.place, s.key) for s in after.standings}


# A model in plain Python


def model(axes, cells, incumbent):
    """The default rule written again: loops, lists and Fractions."""
    keys, means = {}, {}
    for c in axes[0]:
        table_of = [[cells[c, i, r] for r in axes[2]] for i in axes[1]]
        flat = [word for row in table_of for word in row]
        if all(word in ("pass", "fail") for word in flat):
            means[c] = Fraction(flat.count("pass"), len(flat))
            keys[c] = (sum(all(word == "pass" for word in row) for row in table_of), means[c])
    places = {c: 1 + sum(other > keys[c] for other in keys.values()) for c in keys}
    challengers = {c: key for c, key in keys.items() if c != incumbent}
    best = [c for c, key in challengers.items() if key == max(challengers.values())]
    if not best or incumbent not in keys:
        failed = bool(best) and means[best[0]] == 0
        return places, best, KEEP if failed and len(keys) == len(axes[0]) else UNDECIDED
    failed = keys[best[0]][0] <= keys[incumbent][0] or means[best[0]] == 0
    if failed:
        return places, best, KEEP if len(keys) == len(axes[0]) else UNDECIDED
    return places, best, PROMOTE if len(best) == 1 else UNDECIDED


@many
@given(grids())
def test_a_model_in_plain_python_agrees_on_places_challenger_and_verdict(generated):
    axes, cells = generated
    decision = decide(campaign_of(axes, cells), RULE, incumbent=axes[0][0])
    places, best, verdict = model(axes, cells, axes[0][0])
    assert {s.candidate: s.place for s in decision.standings if s.place} == places
    assert set(decision.challenger) == set(best)
    assert decision.verdict == verdict
    assert [s.place for s in decision.standings if s.place] == sorted(places.values())


# Nothing disappears, nothing improves by disappearing


@few
@given(grids(st.sampled_from(["pass", "fail"])), st.data())
def test_one_missing_cell_never_improves_a_place_and_never_promotes_its_candidate(generated, data):
    axes, cells = generated
    cell = data.draw(st.sampled_from(sorted(cells)))
    reason = data.draw(st.sampled_from(["absent", "timeout", "ungraded"]))
    before = {s.candidate: s.place for s in decide(campaign_of(axes, cells), RULE, incumbent=axes[0][0]).standings}
    after = decide(campaign_of(axes, {**cells, cell: reason}), RULE, incumbent=axes[0][0])
    places = {s.candidate: s.place for s in after.standings}
    assert places[cell[0]] is None
    assert cell[0] not in (*after.winner, *after.challenger, *after.highest_mean)
    assert all(places[c] <= before[c] for c in places if c != cell[0])
    if cell[0] == axes[0][0]:
        assert after.verdict != PROMOTE


@few
@given(grids(st.sampled_from(["pass", "fail"])), st.data())
def test_a_fail_turned_pass_never_lowers_any_built_in_reduction(generated, data):
    axes, cells = generated
    failed = [cell for cell in sorted(cells) if cells[cell] == "fail"]
    assume(failed)
    cell = data.draw(st.sampled_from(failed))
    every = [passing_cells, cell_mean, fail_closed, *(f(k) for f in (at_least, pass_at, pass_hat) for k in range(1, len(axes[2]) + 1))]
    before = [r(campaign_of(axes, cells).of(cell[0])) for r in every]
    after = [r(campaign_of(axes, {**cells, cell: "pass"}).of(cell[0])) for r in every]
    assert all(b <= a for b, a in zip(before, after, strict=True))
    assert before[0] < after[0]


@few
@given(grids(st.sampled_from(["pass", "fail"])), st.data())
def test_a_fail_turned_pass_never_lowers_the_place_of_its_candidate_and_lifts_nobody_else(generated, data):
    axes, cells = generated
    failed = [cell for cell in sorted(cells) if cells[cell] == "fail"]
    assume(failed)
    cell = data.draw(st.sampled_from(failed))
    before, after = (
        {s.candidate: s.place for s in decide(campaign_of(axes, words), RULE, incumbent=axes[0][0]).standings}
        for words in (cells, {**cells, cell: "pass"})
    )
    assert after[cell[0]] <= before[cell[0]]
    assert all(after[c] >= before[c] for c in before if c != cell[0])


@few
@given(grids(st.sampled_from(["pass", "fail", "fail", "timeout", "absent"])), st.data())
def test_bounds_hold_every_completion_and_both_ends_are_reached(generated, data):
    axes, cells = generated
    name = data.draw(st.sampled_from(axes[0]))
    gaps = [cell for cell in cells if cell[0] == name and cells[cell] not in ("pass", "fail")]
    assume(0 < len(gaps) <= 6)
    k = data.draw(st.integers(1, len(axes[2])))
    every = [passing_cells, cell_mean, fail_closed, at_least(k), pass_at(k), pass_hat(k)]
    key = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=3))
    views = [
        campaign_of(axes, {**cells, **dict(zip(gaps, words, strict=True))}).of(name)
        for words in itertools.product(("pass", "fail"), repeat=len(gaps))
    ]
    open_view = campaign_of(axes, cells).of(name)
    for reduction in every:
        ends = reduction_bounds(reduction, open_view)
        assert not isinstance(ends, Unavailable)
        assert (ends.low, ends.high) == (min(map(reduction, views)), max(map(reduction, views)))
    ends = key_bounds(key, open_view)
    assert not isinstance(ends, Unavailable)
    keys = [rank_key(view, key) for view in views]
    assert (ends.low, ends.high) == (min(keys), max(keys))


@few
@given(grids())
def test_rows_read_are_cells_and_every_missing_cell_has_a_reason(generated):
    axes, cells = generated
    campaign = table.campaign(csv_of([[*cell, word] for cell, word in cells.items()]))
    assert campaign.rows == campaign.codes.size == len(cells)
    for name in axes[0]:
        coverage = campaign.coverage(name)
        assert coverage.observed + sum(coverage.missing.values()) == coverage.planned == len(axes[1]) * len(axes[2])
        assert sorted(campaign.missing(name)) == sorted(
            (i, r, cells[name, i, r]) for i in axes[1] for r in axes[2] if cells[name, i, r] not in ("pass", "fail")
        )


@few
@given(grids(), st.data())
def test_a_doubled_row_is_always_refused(generated, data):
    _, cells = generated
    rows = [[*cell, word] for cell, word in cells.items()]
    again = data.draw(st.sampled_from(rows))
    position = data.draw(st.integers(0, len(rows)))
    with pytest.raises(EvalkitError, match="2 rows for the cell"):
        table.campaign(csv_of([*rows[:position], again, *rows[position:]]))


# Identities of the reductions


@few
@given(grids(st.sampled_from(["pass", "fail"])))
def test_pass_hat_runs_from_the_mean_of_cells_to_the_share_of_resolved_instances(generated):
    axes, cells = generated
    repetitions = len(axes[2])
    for name in axes[0]:
        view = campaign_of(axes, cells).of(name)
        dial = [pass_hat(k)(view) for k in range(1, repetitions + 1)]
        assert dial == sorted(dial, reverse=True)
        assert dial[0] == cell_mean(view)
        assert dial[-1] == Fraction(fail_closed(view), len(axes[1]))
        chances = [pass_at(k)(view) for k in range(1, repetitions + 1)]
        assert chances == sorted(chances)
        assert chances[-1] == Fraction(at_least(1)(view), len(axes[1]))
        assert [at_least(k)(view) for k in range(1, repetitions + 1)][-1] == fail_closed(view)


@few
@given(st.lists(st.integers(-(2**70), 2**70) | st.integers(-5, 5), min_size=1, max_size=40), st.integers(1, 10**6))
def test_a_columns_total_is_the_sum_of_its_fractions_however_large(values, denominator):
    texts = [f"{value}e-3" for value in values]
    lines = [["A", f"i{n}", "0", "pass", text] for n, text in enumerate(texts)]
    column = table.campaign(csv_of(lines, ("candidate", "instance", "repetition", "outcome", "cost"))).of("A").columns["cost"]
    assert column.total() == sum(Fraction(value, 1000) for value in values)
    assert column.largest() == max(Fraction(value, 1000) for value in values)
    numbers = np.array([values], object)
    assert Column(numbers, denominator, np.ones(numbers.shape, bool)).total() == Fraction(sum(values), denominator)


@few
@given(st.dictionaries(names, st.tuples(st.integers(-3, 3), st.fractions(0, 1, max_denominator=4)), max_size=6))
def test_a_ranking_is_the_number_of_better_keys_plus_one(keys):
    assert {p.candidate: p.place for p in rank(keys)} == {
        name: 1 + sum(other > key for other in keys.values()) for name, key in keys.items()
    }


@few
@given(st.lists(names, max_size=8, unique=True))
def test_natural_order_is_one_order_of_different_names(found):
    assert in_order(found) == in_order(list(reversed(found)))
    assert len({natural(name) for name in found}) == len(found)


# Reweighting

counts = st.tuples(st.integers(0, 40), st.integers(1, 40)).map(lambda pair: (min(pair), max(pair)))


@st.composite
def pairs(draw, least=1, most=4):
    groups = draw(st.lists(names, min_size=least, max_size=most, unique=True))
    return tuple(Tally.of(period, {group: draw(counts) for group in groups}) for period in ("before", "after"))


@few
@given(pairs())
def test_a_tally_at_its_own_mix_is_its_observed_rate_exactly(pair):
    for tally in pair:
        assert standardise(tally, observed_mix(tally)) == observed_rate(tally)


@few
@given(pairs())
def test_rate_and_mix_effects_add_up_to_the_change_and_turn_their_sign_with_time(pair):
    split, back = decompose(*pair), decompose(*reversed(pair))
    assert split.rate_effect + split.mix_effect == split.change == observed_rate(pair[1]) - observed_rate(pair[0])
    assert (split.rate_effect, split.mix_effect) == (-back.rate_effect, -back.mix_effect)
    assert sum(split.rate_by_group.values()) + sum(split.mix_by_group.values()) == split.change
    if observed_mix(pair[0]) == observed_mix(pair[1]):
        assert split.mix_effect == 0


@few
@given(pairs())
def test_the_order_of_groups_changes_nothing(pair):
    shuffled = [Tally.of(t.period, {g: (t.passed[n], t.assessed[n]) for n, g in reversed(list(enumerate(t.groups)))}) for t in pair]
    assert shuffled == list(pair)


@st.composite
def mixes(draw, groups):
    parts = [draw(st.integers(0, 9)) for _ in groups]
    assume(sum(parts))
    return {group: Fraction(part, sum(parts)) for group, part in zip(groups, parts, strict=True)}


@few
@given(pairs(), st.data())
def test_a_standardised_rate_lies_between_the_lowest_and_the_highest_group_rate(pair, data):
    before, after = pair
    mix = data.draw(mixes(before.groups))
    for tally in pair:
        rates = group_rates(tally).values()
        assert min(rates) <= standardise(tally, mix) <= max(rates)
    if dominates(before, after):
        assert standardise(before, mix) >= standardise(after, mix)
        assert not dominates(after, before)


@few
@given(pairs(), st.lists(st.integers(1, 40), min_size=4, max_size=4))
def test_complete_designs_make_crude_and_standardised_rates_equal(pair, sizes):
    """Both periods with the same requests of each group: the observed rates already stand at one mix, and mix explains nothing."""
    design = dict(zip(pair[0].groups, sizes, strict=False))
    a, b = (Tally.of(t.period, {g: (min(x, design[g]), design[g]) for g, x in zip(t.groups, t.passed, strict=True)}) for t in pair)
    for tally in (a, b):
        assert standardise(tally, observed_mix(a)) == observed_rate(tally)
    assert decompose(a, b).mix_effect == 0
    assert decompose(a, b).rate_effect == observed_rate(b) - observed_rate(a)
    assert not reverses(a, b)


@few
@given(grids(st.sampled_from(["pass", "fail"])))
def test_the_mean_of_all_cells_is_the_mean_of_the_instances_means_where_all_plan_as_many(generated):
    axes, cells = generated
    view = campaign_of(axes, cells).of(axes[0][0])
    own = [Fraction(int(x), int(n)) for x, n in zip(view.passed, view.planned, strict=True)]
    assert cell_mean(view) == sum(own) / len(own)


vast = st.tuples(st.integers(0, 10**18 - 1), st.integers(1, 10**18 - 1)).map(lambda pair: (min(pair), max(pair)))


@few
@given(st.lists(vast, min_size=12, max_size=16), st.lists(st.integers(0, 2**70), min_size=16, max_size=16))
def test_counts_whose_sum_is_beyond_2_to_the_62_stay_exact(found, parts):
    assume(sum(parts[: len(found)]))
    t = Tally.of("t", {f"g{n}": pair for n, pair in enumerate(found)})
    mix = {f"g{n}": Fraction(part, sum(parts[: len(found)])) for n, part in enumerate(parts[: len(found)])}
    assert observed_rate(t) == Fraction(sum(x for x, _ in found), sum(n for _, n in found))
    assert sum(observed_mix(t).values()) == 1
    assert standardise(t, observed_mix(t)) == observed_rate(t)
    assert standardise(t, mix) == sum(mix[f"g{n}"] * Fraction(x, asked) for n, (x, asked) in enumerate(found))


open_counts = st.tuples(st.integers(0, 6), st.integers(1, 6), st.integers(0, 2)).map(lambda c: (min(c[:2]), max(c[:2]), max(c[:2]) + c[2]))


@few
@given(st.lists(st.tuples(open_counts, open_counts), min_size=1, max_size=2), st.data())
def test_bounds_of_rates_and_of_a_change_hold_every_completion(found, data):
    a, b = (Tally.of(period, {f"g{n}": pair[at] for n, pair in enumerate(found)}) for at, period in enumerate(("before", "after")))
    mix = data.draw(mixes(a.groups))

    def completions(t):
        for more in itertools.product(*(range(asked - n + 1) for n, asked in zip(t.assessed, t.requested, strict=True))):
            yield Tally.of(t.period, {g: (x + k, asked) for g, x, k, asked in zip(t.groups, t.passed, more, t.requested, strict=True)})

    for bound, rate in ((observed_bounds, observed_rate), (lambda t: standardised_bounds(t, mix), lambda t: standardise(t, mix))):
        rates = [rate(full) for full in completions(a)]
        assert (bound(a).low, bound(a).high) == (min(rates), max(rates))
    changes = [standardise(y, mix) - standardise(x, mix) for x in completions(a) for y in completions(b)]
    change = change_bounds(a, b, mix)
    assert (change.low, change.high) == (min(changes), max(changes))
    assert change.sign == ({(c > 0) - (c < 0) for c in changes}.pop() if len({(c > 0) - (c < 0) for c in changes}) == 1 else None)


@few
@given(pairs())
def test_a_reversal_is_a_change_against_every_group(pair):
    before, after = (group_rates(t) for t in pair)
    change = observed_rate(pair[1]) - observed_rate(pair[0])
    moves = [after[group] - before[group] for group in before]
    against = (change > 0 and max(moves) <= 0 and min(moves) < 0) or (change < 0 and min(moves) >= 0 and max(moves) > 0)
    assert reverses(*pair) == against


@few
@given(pairs(2, 2))
def test_at_the_flip_mix_two_periods_tie_and_without_one_neither_order_turns(pair):
    mix = flip_mix(*pair)
    if mix is None:
        signs = {(d > 0) - (d < 0) for d in (group_rates(pair[0])[g] - group_rates(pair[1])[g] for g in pair[0].groups)}
        assert not {1, -1} <= signs
    else:
        assert sum(mix.values()) == 1
        assert min(mix.values()) > 0
        assert standardise(pair[0], mix) == standardise(pair[1], mix)


@few
@given(st.dictionaries(names, st.integers(1, 9), min_size=1, max_size=4))
def test_a_reference_written_is_the_reference_read(tmp_path_factory, parts):
    made = Reference("id", "rule", {g: Fraction(n, sum(parts.values())) for g, n in parts.items()}, "v", "why")
    path = tmp_path_factory.mktemp("reference") / "r.json"
    path.write_text(reference_text(made), encoding="utf-8")
    assert read_reference(path) == made


# Bad input ends in a named refusal or in the right number, never in anything else


@many
@given(st.text(max_size=12) | st.sampled_from(["1/3", "0.1", "-2", "1e5", "٣", "1/0", "nan"]))
def test_a_text_is_an_exact_number_or_a_refusal(text):
    for read in (rational, measurement):
        try:
            number = read(text)
        except EvalkitError:
            continue
        assert number == Fraction(text)
        assert text.isascii()
    try:
        assert OUTCOMES[outcome_code(text)] in ("pass", "fail") or text.lower() in OUTCOMES
    except EvalkitError:
        assert text.lower() not in OUTCOMES


def one_line(error):
    assert str(error).isprintable()


@few
@given(st.floats() | st.booleans() | st.none() | st.binary(max_size=3) | st.lists(st.integers(), max_size=2))
def test_nothing_else_crosses_the_border(value):
    with pytest.raises(EvalkitError):
        rational(value)


@many
@given(
    st.binary(max_size=60)
    | st.text(max_size=60).map(lambda s: s.encode("utf-8", "surrogatepass"))
    | st.lists(
        st.sampled_from([b"candidate", b"instance", b"repetition", b"outcome", b",", b"\n", b'"', b"pass", b"1", b"a", b";", b"\r"]),
        max_size=40,
    ).map(b"".join)
)
def test_any_bytes_are_a_campaign_or_a_refusal(data):
    for read in (table.campaign, table.tallies, table.inventory):
        try:
            read(data)
        except EvalkitError as error:
            one_line(error)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["fail_closed", "safety", "1/2", "total", "timeout", "every_planned", "complete"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["column", "statistic", "at_most", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
RULE_KEYS = ["rule_id", "owner", "purpose", "reduction", "tie_breakers", "tie_breakers_may_promote", "required_repetitions", "coverage", "count_as_fail", "floor", "blocking_groups",
             "limits", "sign_offs", "unit_reason", "other"]  # fmt: skip


@many
@given(st.dictionaries(st.sampled_from(RULE_KEYS), json_values, max_size=4))
def test_any_json_is_a_rule_or_a_refusal(tmp_path_factory, changes):
    path = tmp_path_factory.getbasetemp() / "rule.json"
    path.write_text(json.dumps({"rule_id": "r", "owner": "o", "purpose": "p", "reduction": "fail_closed", **changes}))
    try:
        rule = read_rule(path)
    except EvalkitError as error:
        one_line(error)
    else:
        assert rule.owner
        assert "other" not in changes


@few
@given(st.text(max_size=300))
def test_a_strangers_text_is_shown_on_one_printable_line(text):
    assert plain(text).isprintable()
    assert len(plain(text)) <= 160


@few
@given(st.integers(2, 5), st.integers(1, 4), st.integers(0, 2**30))
def test_a_key_never_depends_on_how_large_the_campaign_is_stored(instances, repetitions, seed):
    """A campaign and the same cells a thousand times over have the same rates."""
    rng = random.Random(seed)
    codes = np.array([[[CODE[rng.choice(["pass", "fail"])] for _ in range(instances)]] for _ in range(repetitions)], np.uint8)
    many = np.tile(codes, (1, 1, 1000))
    small = Campaign(("A",), tuple(map(str, range(instances))), tuple(map(str, range(repetitions))), codes)
    large = Campaign(("A",), tuple(map(str, range(instances * 1000))), small.repetitions, many)
    for reduction in (cell_mean, pass_hat(repetitions), pass_at(1)):
        assert reduction(small.of("A")) == reduction(large.of("A"))
    assert fail_closed(large.of("A")) == 1000 * fail_closed(small.of("A"))


@few
@given(grids(st.just("timeout"), 2))
def test_a_campaign_of_nothing_but_timeouts_has_no_key_and_a_rule_may_call_them_fails(generated):
    axes, cells = generated
    campaign = campaign_of(axes, cells)
    with pytest.raises(CoverageError):
        rank_key(campaign.of(axes[0][0]), [cell_mean])
    assert rank_key(campaign.of(axes[0][0], ["timeout"]), [fail_closed, cell_mean]) == (0, 0)
    assert math.prod(map(len, axes)) == campaign.codes.size


# The smallest counterexample


BUILT_IN = [passing_cells, cell_mean, fail_closed, at_least(1), at_least(2), pass_at(2), pass_hat(2)]


@settings(few, max_examples=12 * times)
@given(*[st.lists(st.sampled_from(BUILT_IN), min_size=1, max_size=2) for _ in range(2)], st.integers(2, 3))
def test_the_smallest_counterexample_is_one_and_no_smaller_table_is(key_a, key_b, repetitions):
    """By brute force over every histogram of passes of both candidates, smaller tables first."""
    most = 6
    found = smallest_disagreement(key_a, key_b, most_cells=most, repetitions=repetitions)
    cells = most + 1
    if not isinstance(found, NoDisagreement):
        cells = found.campaign.codes[:, 0].size
        a, b = (found.campaign.of(name) for name in "AB")
        assert rank_key(a, key_a) > rank_key(b, key_a)
        assert rank_key(a, key_b) < rank_key(b, key_b)
    for instances in range(1, most // repetitions + 1):
        tables = [
            from_histogram("x", [drawn.count(k) for k in range(repetitions + 1)])
            for drawn in itertools.combinations_with_replacement(range(repetitions + 1), instances)
        ]
        keys = [(rank_key(t, key_a), rank_key(t, key_b)) for t in tables]
        opposed = any(x[0] > y[0] and x[1] < y[1] for x in keys for y in keys)
        assert opposed == (instances * repetitions >= cells) or (instances * repetitions > cells)

"""A campaign: nothing disappears, and nothing is counted twice or compared with something else."""

import hashlib
import random
from fractions import Fraction

import numpy as np
import pytest

from evalkit import Campaign, CoverageError, InputError, RuleError, cell_mean, fail_closed, mean_score, read_campaign, read_rule
from evalkit.campaign import (
    CODE,
    MISSING,
    OUTCOMES,
    Coverage,
    Instances,
    Inventory,
    Labels,
    assemble,
    from_histogram,
    outcome_code,
    require_complete,
)
from evalkit.decide import decide
from evalkit.records import canonical, decision_record
from evalkit.sources import table

HEADER = "candidate,instance,repetition,outcome"


def csv(*rows, header=HEADER, inventory=None):
    return table.campaign("\n".join([header, *rows]).encode(), inventory=inventory)


def test_a_row_per_cell_and_a_cell_per_row():
    campaign = read_campaign()
    assert campaign.rows == campaign.codes.size == 36
    assert campaign.codes.shape == (2, 3, 6)  # repetition first
    assert (campaign.candidates, campaign.repetitions) == (("BASELINE", "CLAUDE", "MERGE"), ("0", "1"))


@pytest.mark.parametrize("word", ["pass", "PASS", "Pass", "true", "True", "TRUE", "1"])
def test_a_pass_is_written_in_these_words_only(word):
    assert OUTCOMES[outcome_code(word)] == "pass"


@pytest.mark.parametrize("word", ["fail", "FAIL", "false", "False", "FALSE", "0"])
def test_the_text_false_is_never_a_pass(word):
    assert OUTCOMES[outcome_code(word)] == "fail"


@pytest.mark.parametrize("word", MISSING)
def test_a_reason_is_neither_pass_nor_fail(word):
    assert OUTCOMES[outcome_code(word)] == word
    campaign = csv("A,i1,0,pass", f"A,i1,1,{word}")
    view = campaign.of("A")
    assert (int(view.passed.sum()), int(view.failed.sum()), view.cells) == (1, 0, 2)
    assert campaign.missing("A") == [("i1", "1", word)]


@pytest.mark.parametrize(
    "word",
    [
        "",
        " ",
        "None",
        "null",
        "NaN",
        "nan",
        "0.5",
        "maybe",
        "1.0",
        "0.0",
        "yes",
        "no",
        "Y",
        "pass ",
        " pass",
        "passed",
        "ok",
        "2",
        "-1",
        "１",
        "١",
        "ﬁail",
        "paſs",
        "TİMEOUT",
        "pass\n",
    ],
)
def test_any_other_word_is_refused_instead_of_guessed(word):
    with pytest.raises(InputError, match="expected pass or fail, true or false, 1 or 0, or a reason"):
        outcome_code(word)


def test_whoever_lacks_a_planned_cell_is_incomplete_and_stays_visible():
    campaign = csv("A,i1,0,pass", "A,i2,0,pass", "B,i1,0,pass")
    assert str(campaign.coverage("B")) == "1 of 2 cells (1 absent)"
    assert campaign.missing("B") == [("i2", "0", "absent")]
    assert [campaign.of(name).complete for name in "AB"] == [True, False]
    with pytest.raises(CoverageError):
        cell_mean(campaign.of("B"))


def test_an_explicit_absent_and_a_row_that_is_not_there_are_the_same_cell():
    assert (
        csv("A,i1,0,pass", "A,i2,0,pass", "B,i1,0,pass").digest == csv("A,i1,0,pass", "A,i2,0,pass", "B,i1,0,pass", "B,i2,0,absent").digest
    )


def test_an_inventory_makes_an_instance_visible_that_nobody_ran():
    rows = "\n".join([HEADER, "A,i1,0,pass", "B,i1,0,pass"]).encode()
    without, campaign = table.campaign(rows), table.campaign(rows, inventory=Inventory(("i1", "i2")))
    assert (without.of("A").complete, campaign.of("A").complete) == (True, False)
    assert (without.declared, campaign.declared) == (False, True)
    assert str(campaign.coverage("A")) == "1 of 2 cells (1 absent)"
    assert without.digest != campaign.digest


def test_a_cell_outside_the_inventory_is_refused_with_its_rows():
    with pytest.raises(InputError, match="outside the declared inventory: i9") as refused:
        table.campaign("\n".join([HEADER, "A,i1,0,pass", "A,i9,0,pass", "B,i9,0,pass"]).encode(), inventory=Inventory(("i1",)))
    assert (refused.value.rows, refused.value.column) == ((3, 4), "instance")


def test_a_declared_group_goes_for_rows_that_name_none_and_for_instances_that_nobody_ran():
    declared = Inventory(("i1", "i2"), ("x", "y"))
    for campaign in (csv("A,i1,0,pass", inventory=declared), csv("A,i1,0,pass,x", header=f"{HEADER},group", inventory=declared)):
        assert (campaign.instances, campaign.groups) == (("i1", "i2"), ("x", "y"))


def test_rows_may_bring_the_groups_that_an_inventory_lacks_but_then_of_every_instance():
    rows = ["A,i1,0,pass,x", "A,i3,0,pass,y"]
    assert csv(*rows, header=f"{HEADER},group", inventory=Inventory(("i1", "i3"))).groups == ("x", "y")
    with pytest.raises(InputError, match="no group for i2, i4; expected a group for every declared instance"):
        csv(*rows, header=f"{HEADER},group", inventory=Inventory(("i1", "i2", "i3", "i4")))


@pytest.mark.parametrize("label", "az")
def test_a_label_other_than_the_declared_one_is_refused_with_its_first_row(label):
    rows = ["A,i1,0,pass,m", f"A,i2,0,pass,{label}", "A,i3,0,pass,other", f"B,i2,0,pass,{label}"]
    with pytest.raises(InputError, match=f"cluster '{label}' for instance 'i2'; expected 'n', as the inventory declares") as refused:
        csv(*rows, header=f"{HEADER},cluster", inventory=Inventory(("i1", "i2", "i3"), None, tuple("mno")))
    assert (refused.value.rows, refused.value.column) == ((3,), "cluster")


def test_an_inventory_with_a_group_too_many_is_not_cut_to_fit():
    with pytest.raises(ValueError, match="longer"):
        csv("A,i1,0,pass", inventory=Inventory(("i1",), ("x", "y")))


def test_a_double_cell_is_refused_even_when_both_say_the_same():
    with pytest.raises(InputError, match=r"2 rows for the cell .'A', 'i1', repetition '0'.") as refused:
        csv("A,i1,0,pass", "A,i2,0,fail", "A,i1,0,pass")
    assert refused.value.rows == (2, 4)


def test_more_double_cells_are_counted_and_the_first_is_named():
    with pytest.raises(InputError, match=r"2 rows for the cell .'A', 'i1', repetition '0'., and 2 more duplicate rows;") as refused:
        csv("A,i0,0,pass", *[f"A,i{n},0,pass" for n in (3, 1, 2)] * 2)
    assert refused.value.rows == (4, 7)


def test_a_refusal_names_the_rows_of_the_file_as_its_reader_numbered_them():
    cells = Labels.of("AA"), Labels.of("ii"), Labels.of("00"), np.array([CODE["pass"]] * 2, np.uint8)
    for numbers, told in ((None, (2, 3)), ([7, 9], (7, 9))):
        with pytest.raises(InputError, match="2 rows for the cell") as refused:
            assemble(*cells, row_numbers=numbers)
        assert refused.value.rows == told


def test_no_row_is_no_campaign():
    with pytest.raises(InputError, match="no rows; expected one row per cell; check that the run wrote its results"):
        assemble(Labels.of([]), Labels.of([]), Labels.of([]), np.zeros(0, np.uint8))


def test_an_instance_in_two_groups_is_refused_with_both_rows():
    for column in ("group", "cluster"):
        with pytest.raises(InputError, match=f"instance 'i1' in {column} 'x' and in {column} 'y'") as refused:
            csv("A,i1,0,pass,x", "A,i2,0,pass,y", "B,i1,0,pass,y", header=f"{HEADER},{column}")
        assert (refused.value.rows, refused.value.column) == ((2, 4), column)


def test_the_first_row_that_moves_an_instance_is_named_whichever_group_came_first():
    rows = ["A,i1,0,pass,x", "A,i2,0,pass,y", "B,i2,0,pass,x", "B,i1,0,pass,y"]
    with pytest.raises(InputError, match="instance 'i2' in group 'y' and in group 'x'") as refused:
        csv(*rows, header=f"{HEADER},group")
    assert refused.value.rows == (3, 4)


def test_equal_counts_of_different_repetition_ids_are_refused_with_the_way_out():
    with pytest.raises(InputError, match='repetition = "order"') as refused:
        csv("A,i1,0,pass", "A,i1,1,pass", "B,i1,1,pass", "B,i1,2,pass")
    assert refused.value.rows == (2, 5)


def test_fewer_repetitions_are_a_gap_and_not_a_refusal():
    campaign = csv("A,i1,0,pass", "A,i1,1,pass", "B,i1,0,pass")
    assert str(campaign.coverage("B")) == "1 of 2 cells (1 absent)"


def test_repetitions_match_by_the_text_of_their_id():
    assert csv("A,i1,0,pass", "B,i1,0,pass").repetitions == ("0",)
    with pytest.raises(InputError, match="but different ids: 0 against 00"):
        csv("A,i1,0,pass", "B,i1,00,pass")


def test_007_and_7_are_two_instances_and_both_candidates_are_incomplete():
    campaign = csv("A,007,0,pass", "B,7,0,pass")
    assert set(campaign.instances) == {"007", "7"}
    assert not campaign.of("A").complete
    assert not campaign.of("B").complete


@pytest.mark.parametrize(
    "pair",
    [
        ("CLAUDE", "CL\u0410UDE"),
        ("\u00e9", "e\u0301"),
        ("a", "A"),
        ("x", "x\u200b"),
        ("none", "None"),
        ("<b>", "&lt;b&gt;"),
        ("a\u202eb", "ab"),
    ],
)
def test_two_names_that_look_alike_are_two_candidates(pair):
    assert len(csv(*(f"{name},i1,0,pass" for name in pair)).candidates) == 2


def test_ids_of_any_length_are_ids():
    long = "9" * 5000
    campaign = csv(f"A,{long},0,pass", f"A,{long}9,0,fail")
    assert campaign.outcome("A", long, "0") == "pass"
    assert len(campaign.digest) == 64


def test_repetition_ids_that_share_nothing_are_refused_before_a_grid_is_made():
    n = 20_000
    with pytest.raises(InputError, match="none shared by two instances"):
        table.campaign((HEADER + "\n" + "\n".join(f"A,i{k % 7},run-{k},1" for k in range(n))).encode())
    with pytest.raises(InputError, match="spread over"):
        table.campaign((HEADER + "\n" + "\n".join(f"A{k},i{k},run-{k % (n // 2)},1" for k in range(n))).encode())


def test_a_repetition_id_for_each_instance_is_refused_as_such_up_to_two_rows_each():
    two = ["A,i1,run-1,1", "A,i2,run-2,1"]
    for rows in (two, two * 2, [*two, "B,i1,run-1,1", "B,i2,run-2,1"]):
        with pytest.raises(InputError, match=r'2 repetition ids, none shared by two instances.*repetition = "order"'):
            csv(*rows)
    with pytest.raises(InputError, match="3 rows for the cell"):
        csv(*two * 2, two[0])


def cells_on_a_grid(n, repetitions, candidates, instances):
    """The first n cells of a grid, in order, as rows."""
    r, c, i = np.unravel_index(np.arange(n), (repetitions, candidates, instances))
    names = (tuple(map(str, range(k))) for k in (candidates, instances, repetitions))
    return assemble(*map(Labels, names, (c, i, r)), np.full(n, CODE["pass"], np.uint8))


def test_a_grid_holds_50_million_cells_or_50_for_each_row_and_no_more():
    assert cells_on_a_grid(1, 10_000, 5_000, 1).codes.size == 50_000_000
    assert cells_on_a_grid(1_000_200, 100, 100, 5_001).codes.size == 50 * 1_000_200
    for n, *shape in ((1, 739, 57, 1_187), (1_000_199, 100, 100, 5_001)):
        with pytest.raises(InputError, match=f"{n} rows that spread over {shape[0]} repetitions x {shape[1]} candidates"):
            cells_on_a_grid(n, *shape)


def test_the_digest_does_not_depend_on_the_order_of_rows_columns_or_candidates():
    header = ["candidate", "instance", "repetition", "outcome", "group", "cost", "detail"]
    rows = [
        [c, f"i{i}", str(r), "pass" if (i + r) % 2 else "fail", f"g{i % 2}", f"0.{i}", f"note {i}"]
        for c in "BAC"
        for i in range(12)
        for r in range(3)
    ]
    digests, records = set(), set()
    for seed in range(6):
        order = random.Random(seed).sample(range(len(header)), len(header))
        lines = [[row[k] for k in order] for row in random.Random(seed).sample(rows, len(rows))]
        campaign = csv(*map(",".join, lines), header=",".join(header[k] for k in order))
        digests.add(campaign.digest)
        records.add(canonical(decision_record(campaign, read_rule(), decide(campaign, read_rule(), incumbent="A"))))
    assert len(digests) == len(records) == 1


@pytest.mark.parametrize(
    "change",
    [("A,i1,0,pass,g,1", "A,i1,0,fail,g,1"), ("A,i1,0,pass,g,1", "A,i1,0,timeout,g,1"), ("A,i1,0,pass,g,1", "A,i1,0,pass,g,2"), ("A,i1,0,pass,g,1", "A,i1,0,pass,g,"),
     (",g,", ",h,"), ("A,", "A2,"), ("i2", "i3"), (",1,pass", ",2,pass"), ("cost", "latency"), ("group", "cluster")],
)  # fmt: skip
def test_the_digest_changes_with_every_part_of_the_content(change):
    text = f"{HEADER},group,cost\nA,i1,0,pass,g,1\nA,i1,1,pass,g,1\nA,i2,0,pass,g,1\nA,i2,1,pass,g,1\n"
    assert text.count(change[0]) > 0
    assert table.campaign(text.encode()).digest != table.campaign(text.replace(*change).encode()).digest


def test_the_digest_of_the_published_campaign_is_pinned():
    """It binds every decision record: a change of the canonical form needs a new format line."""
    assert read_campaign().digest == "e832ad6c1fa672f6b6498cbce73fb26672bf9426a33c89e0d0a25329eea9ed14"


def test_equal_numbers_in_other_notation_give_the_same_digest():
    one = csv("A,i1,0,pass,0.50", "A,i2,0,pass,2", header=HEADER + ",cost")
    other = csv("A,i1,0,1,5e-1", "A,i2,0,TRUE,2.0", header=HEADER + ",cost")
    assert one.digest == other.digest


def test_half_the_cost_is_another_campaign():
    one, half = (csv(f"A,i1,0,pass,{a}", f"A,i2,0,pass,{b}", header=HEADER + ",cost") for a, b in (("1", "3"), ("0.5", "1.5")))
    assert one.columns["cost"].numerators.tolist() == half.columns["cost"].numerators.tolist()
    assert one.digest != half.digest


def test_a_sum_that_no_machine_integer_holds_is_exact(grid):
    for text in ("4600000000000000000", "-4600000000000000000", "1e30", "1e-20"):
        column = grid({"A": "TTT"}, columns={"cost": lambda c, i, r, text=text: text}).of("A").columns["cost"]
        assert (column.total(), column.largest()) == (3 * Fraction(text), Fraction(text))


def test_numbers_are_machine_integers_as_long_as_no_sum_can_overflow_and_zero_where_none_was_measured(grid):
    largest = (2**63 - 1) // 7  # exactly
    for number, kind in ((3, np.int64), (largest, np.int64), (largest + 1, object), (-largest - 1, object)):
        column = grid({"A": "TTTTTTT"}, columns={"cost": lambda c, i, r, n=number: "" if r == 1 else n}).columns["cost"]
        assert (column.numerators.dtype, column.numerators.ravel().tolist()) == (kind, [number, 0, *[number] * 5])


def test_a_rule_may_count_a_reason_as_fail_and_the_coverage_says_so(grid):
    campaign = grid({"A": "Tt TT", "B": "TT TT"})
    view = campaign.of("A", ["timeout"])
    assert (fail_closed(view), cell_mean(view)) == (1, Fraction(3, 4))
    assert str(campaign.coverage("A", ["timeout"])) == "4 of 4 cells (1 timeout counted as fail by the rule)"
    assert campaign.missing("A", ["timeout"]) == []
    assert campaign.missing("A", ["error"]) == [("i1", "1", "timeout")]


def test_a_cell_counted_as_fail_scores_zero_whatever_it_holds(grid):
    campaign = grid(
        {"A": "Tt te", "B": "TT TT"},
        columns={"score": lambda c, i, r: "" if (i, r) == (0, 1) else "0.5", "cost": lambda c, i, r: 2, "time": lambda c, i, r: 3},
    )
    view = campaign.of("A", ["timeout", "error"])
    assert mean_score(view) == Fraction(1, 8)  # one of four cells keeps its 1/2
    assert (view.columns["cost"].total(), view.columns["time"].total()) == (8, 12)  # money and time were spent all the same
    with pytest.raises(CoverageError):
        mean_score(campaign.of("A", ["timeout"]))  # the error is still missing


@pytest.mark.parametrize("word", ["pass", "fail", "crash", ""])
def test_only_a_reason_counts_as_fail(word):
    with pytest.raises(RuleError):
        read_campaign().of("CLAUDE", [word])


def test_required_repetitions_show_what_was_not_run_and_refuse_what_was_not_required():
    campaign = csv("A,i1,0,pass", "A,i1,1,pass")
    wide = campaign.require(["0", "1", "2"])
    assert str(wide.coverage("A")) == "2 of 3 cells (1 absent)"
    assert wide.outcome("A", "i1", "2") == "absent"
    with pytest.raises(RuleError, match="cells of repetition 1"):
        campaign.require(["0"])


def test_a_long_list_of_names_is_cut_after_a_dozen():
    names = [f"c{n}" for n in range(14)]
    with pytest.raises(InputError, match=r"no candidate 'nobody'; expected one of c0, c1, .*, c12 and 1 more; name a candidate"):
        csv(*(f"{name},i1,0,pass" for name in names)).of("nobody")
    with pytest.raises(RuleError, match=r"repetition x; expected .* requires: c0, c1, .*, c11 and 2 more; remove the extra repetitions"):
        csv("A,i1,x,pass").require(names)


def test_required_repetitions_keep_every_number_in_its_cell(grid):
    campaign = grid({"A": "TT TT"}, columns={"cost": lambda c, i, r: 10 * i + r})
    wide = campaign.require(["00", "1", "0"])
    assert wide.repetitions == ("0", "00", "1")
    column = wide.of("A").columns["cost"]
    assert column.numerators.tolist() == [[0, 10], [0, 0], [1, 11]]
    assert column.present.tolist() == [[True, True], [False, False], [True, True]]


def test_repetition_by_order_numbers_the_rows_of_each_instance_in_file_order():
    rows = "\n".join(
        [HEADER, "A,i1,x,pass", "A,i1,y,fail", "A,i2,z,pass", "A,i2,w,pass", "B,i1,1,fail", "B,i1,2,fail", "B,i2,3,fail", "B,i2,4,pass"]
    ).encode()
    with pytest.raises(InputError):
        table.campaign(rows)
    campaign = table.campaign(rows, repetition="order")
    assert campaign.repetitions == ("0", "1")
    assert [campaign.outcome("A", "i1", r) for r in "01"] == ["pass", "fail"]


def test_one_name_for_two_grader_versions_is_refused():
    with pytest.raises(InputError, match="one grader_version in a file"):
        csv("A,i1,0,pass,v1", "A,i2,0,pass,v2", header=HEADER + ",grader_version")
    assert dict(csv("A,i1,0,pass,v1", "A,i2,0,pass,v1", header=HEADER + ",grader_version").bindings) == {"grader_version": "v1"}


def test_a_campaign_cannot_be_changed():
    campaign = read_campaign()
    with pytest.raises(ValueError, match="read-only"):
        campaign.codes[0, 0, 0] = CODE["pass"]
    with pytest.raises(TypeError):
        campaign.columns["cost"] = None
    with pytest.raises(AttributeError):
        campaign.rows = 3


def test_no_array_of_a_campaign_can_be_changed(grid):
    campaign = grid({"A": "TF t."}, columns={"cost": lambda c, i, r: 2})
    view = campaign.of("A", ["timeout"])
    handed = [view.passed, view.failed, view.planned, view.columns["cost"].numerators, view.columns["cost"].present]
    for array in (campaign.codes, campaign.tally_by_code, *handed):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1


def test_no_part_of_a_campaign_can_be_changed_and_each_is_equal_to_itself_only(grid):
    campaign = grid({"A": "TF"}, columns={"cost": lambda c, i, r: 2})
    parts = [campaign, campaign.of("A"), campaign.columns["cost"], Labels.of("ab")]
    assert len({*parts, *parts, campaign.of("A"), Labels.of("ab")}) == 6
    names = ("codes", "passed", "numerators", "index", "observed", "groups")
    for part, name in zip((*parts, campaign.coverage("A"), Inventory(("i1",))), names, strict=True):
        with pytest.raises(AttributeError):
            setattr(part, name, None)


def test_codes_of_another_shape_or_type_are_refused():
    for codes in (np.zeros((1, 1, 2), np.uint8), np.zeros((0, 1, 1), np.uint8), np.zeros((1, 1, 1), np.int64), np.zeros((1, 1, 1), bool)):
        with pytest.raises(InputError, match="codes of shape"):
            Campaign(("A",), ("i1",), ("0",), codes)


def test_a_campaign_of_codes_alone_has_read_no_row():
    campaign = Campaign(("A",), ("i1",), ("0",), np.full((1, 1, 1), CODE["pass"], np.uint8))
    assert (campaign.rows, campaign.of("A").complete) == (0, True)


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.of("X"),
        lambda c: c.outcome("X", "i1", "0"),
        lambda c: c.outcome("CLAUDE", "i9", "0"),
        lambda c: c.outcome("CLAUDE", "i1", "9"),
    ],
)
def test_a_cell_that_is_not_planned_has_no_outcome(ask):
    with pytest.raises(InputError):
        ask(read_campaign())


def test_coverage_says_observed_of_planned_and_every_reason():
    campaign = csv("A,i1,0,pass", "A,i1,1,error", "A,i2,0,timeout", "A,i2,1,error", "A,i3,0,cancelled", "B,i3,1,ungraded")
    assert str(campaign.coverage("A")) == "1 of 6 cells (1 absent, 2 error, 1 timeout, 1 cancelled)"
    assert sum(campaign.coverage("A").missing.values()) == len(campaign.missing("A")) == 5
    assert [Coverage("A", 12, n, {}, {}).complete for n in (11, 12, 13)] == [False, True, False]


@pytest.mark.parametrize(("planned", "passed"), [(0, 0), (1, 0), (1, 2)])
def test_an_instance_with_no_cell_or_with_others_than_planned_is_incomplete_and_named(planned, passed):
    view = Instances("A", ("i1", "i2"), np.array([1, passed]), np.array([0, 0]), np.array([1, planned]))
    assert view.complete is False
    with pytest.raises(
        CoverageError, match=rf"{1 + passed} of {1 + planned} cells of 'A' \(short: i2\); expected every planned cell graded"
    ):
        require_complete(view)


def test_a_histogram_is_one_instance_for_each_that_it_counts():
    view = from_histogram("M", [1, 0, 1])
    assert (view.ids, view.passed.tolist(), view.failed.tolist(), view.complete) == (("M 1", "M 2"), [0, 2], [2, 0], True)
    assert [from_histogram("M", counts).cells for counts in ([1, 1], [0, 1], [1, 0], [80_000] + [0] * 50_000)] == [2, 1, 1, 4_000_000_000]


@pytest.mark.parametrize("counts", [[], [3], [0, 0], [4_000_000_001, 0]])
def test_a_histogram_of_no_instance_no_repetition_or_endless_cells_is_refused(counts):
    with pytest.raises(
        InputError, match=f"a histogram of {len(counts)} entries and {sum(counts)} instances; .*; correct the histogram of 'M'"
    ):
        from_histogram("M", counts)


def test_counting_agrees_with_a_loop_over_the_cells():
    rng = np.random.default_rng(7)
    codes = rng.integers(0, len(OUTCOMES), (5, 3, 40)).astype(np.uint8)
    campaign = Campaign(("A", "B", "C"), tuple(map(str, range(40))), tuple("01234"), codes.copy())
    for c, name in enumerate(campaign.candidates):
        view = campaign.of(name, ["error", "timeout"])
        for i in range(40):
            words = [OUTCOMES[codes[r, c, i]] for r in range(5)]
            assert view.passed[i] == words.count("pass")
            assert view.failed[i] == sum(words.count(word) for word in ("fail", "error", "timeout"))


def test_the_canonical_digest_can_be_computed_by_hand():
    head = (
        '{"bindings": {}, "candidates": ["A"], "clusters": null, "columns": [], "declared": false, "format": "evalkit campaign 1", '
        '"groups": null, "instances": ["i1", "i2"], "repetitions": ["0"]}'
    )
    by_hand = hashlib.sha256(head.encode() + b"\0" + bytes([CODE["pass"], CODE["fail"]])).hexdigest()
    assert csv("A,i2,0,fail", "A,i1,0,pass").digest == by_hand

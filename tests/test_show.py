"""What the tables of notebooks and reports say, and where a page may break them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from evalkit import Limit, decide, lesson, read_campaign, read_rule, show
from evalkit.records import bundled

A, B = "a" * 100 + "-first", "a" * 100 + "-second"


def gate(fixture, **rule):
    return decide(read_campaign(bundled(f"fixtures/{fixture}.csv")), replace(read_rule(), **rule), incumbent="BASELINE")


def test_a_long_head_keeps_its_two_ends_so_that_two_names_stay_two():
    shown = show.table(["candidate", f"share, {A}"], [[A, 1], [B, 2]])
    assert re.findall("a+…a+-[a-z]+", shown.text) == [
        f"{'a' * n}…{'a' * (31 - len(end))}{end}" for n, end in ((25, "-first"), (32, "-first"), (32, "-second"))
    ]
    assert max(map(len, shown.text.splitlines())) <= 2 * 64 + 2


def test_a_number_stays_with_the_head_that_it_ends():
    assert "LUCKY rep&nbsp;0</th>" in show.table(["instance", "LUCKY rep 0"], [["i1", "T"]]).html


@pytest.mark.parametrize(
    ("name", "style"),
    [
        ("candidate-12", "white-space:pre"),
        ("candidate-12 (incumbent)", "white-space:nowrap"),
        ("the challenger of the last week of March", ""),
        ("x" * 17, "overflow-wrap:anywhere"),
    ],
)
def test_a_page_breaks_a_head_between_words_and_only_a_long_word_within(name, style):
    (found,) = re.findall('<th scope="row" style="text-align:left;?([^"]*)"', show.table(["candidate", "n"], [[name, 1]]).html)
    assert style in found
    assert ("anywhere" in found) == (len(name) == 17)


def test_the_labels_name_what_withholds_the_verdict():
    assert "5 of 5 conditions met\n" in show.labels(gate("guarded")).text + "\n"
    assert "4 of 5 conditions met; not met: strictly above the incumbent; not ranked: CLAUDE" in show.labels(gate("one_timeout")).text
    guarded = show.labels(gate("guarded", blocking_groups=("safety",), sign_offs=("release",))).text
    assert "not met: every cell of group safety passed; not evaluated: signed off by release" in guarded


def test_what_withholds_a_verdict_stands_out_in_the_table_of_conditions():
    told = lesson.gate(gate("guarded", blocking_groups=("safety",), sign_offs=("release",))).html
    assert re.findall("<strong>([^<]*)</strong>", told) == ["KEEP the incumbent: BASELINE stays", "not met", "not evaluated"]


def test_a_whole_cost_is_told_as_a_whole_number():
    assert "CLAUDE total cost 42\n" in lesson.gate(gate("guarded", limits=(Limit("cost", "total", 40),))).text + "\n"


def test_a_disagreement_is_flagged_only_where_picker_and_rule_choose_differently():
    assert "Flagged: the winner key" in show.review(gate("guarded")).text
    assert "Flagged" not in show.review(gate("merge_baseline")).text

"""Rules, references and decisions as files: strict in, canonical out."""

import hashlib
import json
import os
from fractions import Fraction

import pytest

from evalkit import (
    EvalkitError,
    RecordError,
    Reference,
    RuleError,
    Tally,
    at_least,
    cell_mean,
    compare,
    decide,
    read_campaign,
    read_reference,
    read_rule,
    read_tallies,
)
from evalkit.records import (
    bundled,
    canonical,
    decision_record,
    digest_of,
    mix_record,
    reference_text,
    rule_as_json,
    tallies_digest,
    write_whole,
)

RULE = {"rule_id": "r1", "owner": "the release owner", "purpose": "a claim", "reduction": "fail_closed"}
FULL = {
    **RULE,
    "tie_breakers": ["cell_mean", "lowest(cost)"],
    "tie_breakers_may_promote": True,
    "required_repetitions": ["1", "0"],
    "coverage": "complete",
    "count_as_fail": ["timeout", "error"],
    "floor": "2/1",
    "blocking_groups": ["safety"],
    "limits": [{"column": "cost", "statistic": "total", "at_most": "0.50"}],
    "sign_offs": ["safety", "legal"],
    "margin": "1/10",
    "alpha": "1/100",
    "unit_reason": "the picker only sorts the page",
}
REFERENCE = {
    "reference_id": "support_mix_fixture_v1",
    "grouping_rule": "task_type_v1",
    "weights": {"routine": "1/10", "complex": "9/10"},
    "missing_group_policy": "comparison_unavailable",
    "grader_version": "fixture_boolean_v1",
}


@pytest.fixture
def written(tmp_path):
    def write(record):
        path = tmp_path / "record.json"
        path.write_bytes(record if isinstance(record, bytes) else (record if isinstance(record, str) else json.dumps(record)).encode())
        return path

    return write


def test_the_articles_reference_loads_as_printed(written):
    reference = read_reference(written(REFERENCE))
    assert reference.weights == {"routine": Fraction(1, 10), "complex": Fraction(9, 10)}
    assert reference == read_reference()


def test_the_bundled_rule_is_the_articles_defensible_default():
    rule = read_rule()
    assert [r.__name__ for r in rule.key] == ["fail_closed", "cell_mean"]
    assert (rule.required_repetitions, rule.tie_breakers_may_promote, rule.floor) == (None, False, None)
    assert rule.owner


def test_every_key_of_a_rule_reaches_the_rule(written):
    rule = read_rule(written(FULL))
    assert rule_as_json(rule) == {
        **FULL, "floor": "2", "count_as_fail": ["error", "timeout"], "sign_offs": ["legal", "safety"],
        "limits": [{"column": "cost", "statistic": "total", "at_most": "1/2"}],
    }  # fmt: skip


@pytest.mark.parametrize("key", sorted(FULL))
def test_the_digest_of_a_rule_changes_with_every_key(written, key):
    changed = {"reduction": "at_least(2)", "tie_breakers": ["cell_mean"], "tie_breakers_may_promote": False, "required_repetitions": ["0"],
               "count_as_fail": ["error"], "floor": 3, "blocking_groups": [], "limits": [], "sign_offs": ["legal"],
               "coverage": "decided", "margin": 0, "alpha": "1/20"}  # fmt: skip
    before = digest_of(read_rule(written(FULL)))
    assert digest_of(read_rule(written({**FULL, key: changed.get(key, "another text")}))) != before


def test_the_digest_of_a_rule_ignores_spelling_that_changes_nothing(written):
    spelled = {
        **RULE,
        "tie_breakers": [],
        "tie_breakers_may_promote": False,
        "required_repetitions": "every_planned",
        "coverage": "complete",
        "limits": [],
    }
    assert digest_of(read_rule(written(RULE))) == digest_of(read_rule(written(spelled)))
    numbers = [digest_of(read_rule(written({**RULE, "floor": floor}))) for floor in (2, "2", "4/2", "2.0")]
    assert len(set(numbers)) == 1
    assert digest_of(read_rule(written(json.dumps(dict(reversed(FULL.items())), indent=4)))) == digest_of(read_rule(written(FULL)))


WRONG = [None, True, 1, -1, 1.5, "", " ", [], {}, ["x", "x"], [1], [None], [[]], {"a": 1}, "everything"]
ALLOWED = {  # the few of WRONG that are right for a key
    "rule_id": ["everything"], "owner": ["everything"], "purpose": ["everything"], "unit_reason": ["everything"], "tie_breakers": [[]],
    "tie_breakers_may_promote": [True], "count_as_fail": [[]], "floor": [1], "blocking_groups": [[]], "limits": [[]], "sign_offs": [[]],
}  # fmt: skip


@pytest.mark.parametrize("key", sorted(FULL))
def test_a_wrong_type_is_refused_for_every_key_of_a_rule(written, key):
    for value in WRONG:
        record = written({**FULL, key: value})
        if any(type(value) is type(right) and value == right for right in ALLOWED.get(key, [])):
            read_rule(record)
            continue
        with pytest.raises(EvalkitError) as refused:
            read_rule(record)
        assert refused.value.file == str(record), (key, value)


def test_an_alpha_of_zero_is_refused_and_not_the_default(written):
    assert read_rule(written(RULE)).alpha == Fraction(1, 20)
    for alpha in (0, "0", "0/7", "1/2", "-1/20", 1):
        with pytest.raises(RuleError, match="alpha"):
            read_rule(written({**RULE, "alpha": alpha}))


def test_a_limit_says_its_ceiling_and_nothing_that_the_kit_does_not_know(written):
    limit = {"column": "cost", "statistic": "total", "at_most": 0}
    assert read_rule(written({**RULE, "limits": [limit]})).limits[0].at_most == 0
    with pytest.raises(RecordError, match="no key 'at_most'; expected a limit with that key"):
        read_rule(written({**RULE, "limits": [{"column": "cost", "statistic": "total"}]}))
    with pytest.raises(RecordError, match="unknown key at_least; expected a limit with the keys column, statistic, at_most"):
        read_rule(written({**RULE, "limits": [{**limit, "at_least": 1}]}))


def test_a_number_of_18_digits_is_read_and_one_of_19_refused(written):
    assert read_rule(written({**RULE, "floor": 10**18 - 1})).floor == 10**18 - 1
    with pytest.raises(RecordError, match="the number '1000000000000000000'; expected a finite number of at most 18 digits"):
        read_rule(written({**RULE, "floor": 10**18}))


def test_a_list_is_refused_in_the_characters_that_the_file_has(written):
    with pytest.raises(RecordError, match=r"""found \["né", "né"\] for key 'blocking_groups'"""):
        read_rule(written({**RULE, "blocking_groups": ["né", "né"]}))


def test_a_margin_outside_0_to_1_or_for_another_unit_is_refused(written):
    assert read_rule(written({**RULE, "margin": 0})).margin == 0
    for wrong in ({"margin": 1}, {"margin": "-1/10"}, {"margin": "1/10", "reduction": "cell_mean"}):
        with pytest.raises(RuleError, match="margin"):
            read_rule(written({**RULE, **wrong}))


@pytest.mark.parametrize("key", sorted(REFERENCE))
def test_a_wrong_type_is_refused_for_every_key_of_a_reference(written, key):
    for value in [v for v in WRONG if not (v == "everything" and key in ("reference_id", "grouping_rule", "grader_version"))]:
        with pytest.raises(EvalkitError):
            read_reference(written({**REFERENCE, key: value}))
        with pytest.raises(RecordError, match=f"no key '{key}'"):
            read_reference(written({k: v for k, v in REFERENCE.items() if k != key}))


@pytest.mark.parametrize("key", sorted(RULE))
def test_a_rule_says_who_may_act_on_it_and_what_for(written, key):
    with pytest.raises(RecordError, match=f"no key '{key}'"):
        read_rule(written({k: v for k, v in RULE.items() if k != key}))


@pytest.mark.parametrize("key", ["blocking_group", "Floor", "floor ", "", "tie-breakers", "__class__"])
def test_a_misspelt_condition_is_not_a_condition_that_nobody_applies(written, key):
    with pytest.raises(RecordError, match="unknown key"):
        read_rule(written({**RULE, key: ["safety"]}))


@pytest.mark.parametrize(
    "weights",
    ['{"a": 0.1, "b": 0.9}', '{"a": 1}', '{"a": .1, "b": "9/10"}', '{"a": "1/10", "b": "8/10"}', '{"a": "1/10", "a": "9/10"}', '{"a": "1e-1", "b": "9/10"}', '{"a": "-1/10", "b": "11/10"}',
     '{"a": "1/0"}', '{"a": "٠/١", "b": "1"}', '{"a": NaN}', '{"a": null}', '{"a": true}', '{"a": ["1"]}', "{}", '{"a": "0.333", "b": "0.667", "c": "0.001"}', '{"a": "1.0000000000000000001"}'],
)  # fmt: skip
def test_weights_are_ascii_text_that_sums_to_exactly_one(written, weights):
    with pytest.raises(EvalkitError):
        read_reference(written(json.dumps({**REFERENCE, "weights": "?"}).replace('"?"', weights)))


def test_weights_as_decimals_and_as_fractions_are_the_same_reference(written):
    decimals = read_reference(written({**REFERENCE, "weights": {"complex": "0.9", "routine": "0.10"}}))
    assert digest_of(decimals) == digest_of(read_reference())


@pytest.mark.parametrize(
    "text",
    [b"", b"   ", b"[]", b"7", b'"x"', b"null", b"{", b'{"a": 1,}', b"{'a': 1}", b"// c\n{}", b"\xff\xfe{\x00}\x00", b'{"a": "\xff"}', b"[" * 100_000, b'{"a":' * 100_000,
     b'{"floor": ' + b"9" * 5000 + b"}", b'{"floor": 1e400}', b'{"floor": Infinity}', b'{"rule_id": "\\ud800"}', b" " * 1_000_001, b'{"a": 1} {"b": 2}', b"\0"],
    ids=lambda raw: repr(raw[:12]),
)  # fmt: skip
def test_json_that_is_not_one_plain_object_is_refused_without_a_traceback(written, text):
    for read in (read_rule, read_reference):
        with pytest.raises(RecordError):
            read(written(text))


@pytest.mark.parametrize("path", ["nothing/here.json", ".", "a\0b", "x" * 5000])
def test_a_path_that_cannot_be_read_is_refused(path):
    for read in (read_rule, read_reference):
        with pytest.raises(RecordError, match="no readable file"):
            read(path)


def test_a_record_that_cannot_be_read_says_why(tmp_path):
    for path, why in ((tmp_path / "no.json", "No such file or directory"), (os.devnull, "a pipe or a device")):
        with pytest.raises(RecordError, match=rf"no readable file \({why}\); expected a JSON record; check the path"):
            read_rule(path)
    with pytest.raises(RecordError, match="no bundled file 'nothing'"):
        bundled("nothing")


def test_a_record_of_a_megabyte_is_read_and_one_byte_more_refused(written):
    assert read_rule(written(json.dumps(RULE).ljust(1_000_000))).rule_id == "r1"
    with pytest.raises(RecordError, match="more than a megabyte"):
        read_rule(written(json.dumps(RULE).ljust(1_000_001)))


def test_a_byte_order_mark_at_the_start_of_a_record_is_harmless(written):
    assert digest_of(read_rule(written(b"\xef\xbb\xbf" + json.dumps(FULL).encode()))) == digest_of(read_rule(written(FULL)))


def test_no_text_in_a_rule_runs_code(written, tmp_path):
    mark = tmp_path / "ran"
    for name in (
        f"__import__('pathlib').Path({str(mark)!r}).touch()",
        "lowest.__globals__",
        "at_least(__import__('os'))",
        "{0.__class__}",
        "decide",
    ):
        with pytest.raises(RuleError):
            read_rule(written({**RULE, "reduction": name}))
    assert not mark.exists()


def test_a_reference_written_is_the_reference_read(written):
    made = Reference("mine", "rule", {"x": Fraction(1, 3), "y <b>": Fraction(2, 3)}, "v", "because é")
    assert read_reference(written(reference_text(made))) == made


def test_records_are_written_for_a_diff_an_indented_line_per_key():
    made = Reference("né", "rule", {"x": Fraction(1)}, "v")
    assert reference_text(made).startswith('{\n  "reference_id": "né",\n  "grouping_rule": "rule",\n  "weights": {\n    "x": "1"\n  },\n')
    assert canonical({"b": ["é"], "a": 1}) == '{\n  "a": 1,\n  "b": [\n    "\\u00e9"\n  ]\n}\n'


def test_a_number_that_json_does_not_have_reaches_no_record():
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            canonical({"mean": number})


def test_a_decision_record_has_the_same_bytes_whatever_the_order_of_the_rows(tmp_path):
    text = bundled("fixtures/claude_merge.csv").read_text().splitlines()
    other = tmp_path / "shuffled.csv"
    other.write_text("\r\n".join([text[0], *reversed(text[1:])]))
    records = []
    for path in ("", other):
        campaign = read_campaign(path)
        records.append(canonical(decision_record(campaign, read_rule(), decide(campaign, read_rule(), incumbent="BASELINE"))))
    assert records[0] == records[1]
    record = json.loads(records[0])
    assert record["labels"] == {"highest_mean": ["MERGE"], "winner": ["CLAUDE"], "verdict": "promote"}
    assert record["candidates"]["CLAUDE"]["key"] == ["2", "5/12"]
    assert record["campaign"]["digest"] == read_campaign().digest
    assert record["rule"]["digest"] == digest_of(read_rule())


def test_a_decision_record_names_the_pickers_key_and_not_the_rules():
    campaign, rule = read_campaign(), read_rule()
    decision = decide(campaign, rule, incumbent="BASELINE", picker=(at_least(1), cell_mean))
    picker = decision_record(campaign, rule, decision)["picker"]
    assert picker == {"key": "at_least(1), then cell_mean", "picked": ["MERGE"], "same_unit_as_rule": False}


def test_a_cell_that_a_rule_counts_as_fail_was_not_observed(grid, rule):
    campaign, lenient = grid({"A": "Tt TT", "B": "TT Ft"}), rule(count_as_fail=("timeout",))
    cells = decision_record(campaign, lenient, decide(campaign, lenient, incumbent="B"))["candidates"]["A"]
    assert (cells["planned"], cells["observed"], cells["missing"], cells["counted_as_fail"]) == (4, 3, {}, {"timeout": 1})
    assert (cells["passed"], cells["failed"]) == (3, 1)


def test_a_decision_record_holds_no_float_and_no_time():
    campaign = read_campaign()
    text = canonical(decision_record(campaign, read_rule(), decide(campaign, read_rule(), incumbent="BASELINE")))
    json.loads(text, parse_float=lambda number: pytest.fail(f"a float in a record: {number}"))
    assert text.isascii()


def test_a_record_of_names_in_any_script_is_ascii(grid, rule):
    campaign = grid({"名前<b>\u202e": "TT", "é": "FF"})
    text = canonical(decision_record(campaign, rule(), decide(campaign, rule(), incumbent="é")))
    assert text.isascii()
    assert "名前<b>\u202e" in json.loads(text)["candidates"]


def test_a_mix_record_never_says_promote():
    tallies, reference = read_tallies(), read_reference()
    record = mix_record(tallies, reference, compare(tallies["baseline"], tallies["candidate"], reference))
    assert record["verdict"] == "compared"
    assert "promote" not in canonical(record)
    assert (record["standardised"], record["rate_effect"], record["mix_effect"]) == (["9/20", "7/20"], "-1/10", "2/5")


def test_a_tallies_digest_does_not_depend_on_order_and_changes_with_a_count():
    def both(n):
        return {"a": Tally.of("a", {"x": (1, 2), "y": (n, 4)}), "b": Tally.of("b", {"x": (1, 2)})}

    assert tallies_digest(both(3)) == tallies_digest(dict(reversed(both(3).items())))
    assert tallies_digest(both(3)) != tallies_digest(both(2))


def test_a_digest_is_the_sha256_of_the_canonical_text():
    assert digest_of(read_rule()) == hashlib.sha256(canonical(rule_as_json(read_rule())).encode()).hexdigest()


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "decision.json"
    write_whole(path, "old")

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["decision.json"]


def test_a_file_is_on_the_disk_before_it_has_its_name_and_everybody_may_read_it(tmp_path, monkeypatch):
    path, sizes = tmp_path / "decision.json", []
    monkeypatch.setattr(os, "fsync", lambda descriptor: sizes.append((os.fstat(descriptor).st_size, path.exists())))
    write_whole(path, "né")
    assert sizes == [(3, False)]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_failed_write_tells_its_own_reason_though_the_temporary_file_is_gone(tmp_path, monkeypatch):
    def fail(descriptor):
        next(tmp_path.iterdir()).unlink()
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "decision.json", "new")
    assert not list(tmp_path.iterdir())

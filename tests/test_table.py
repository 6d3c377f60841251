"""The canonical tables: every column is text, every row is accounted for, every refusal has a place."""

import gzip
import json

import pytest

from evalkit import EvalkitError, InputError, cell_mean, pass_hat, read_campaign, read_tallies
from evalkit.campaign import Inventory
from evalkit.sources import read_inventory, table

HEADER = "candidate,instance,repetition,outcome"


@pytest.fixture
def written(tmp_path):
    def write(content, name="campaign.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_007_stays_007_and_1e3_stays_1e3(written):
    campaign = read_campaign(written(f"{HEADER}\nA,007,0,pass\nA,1e3,0,fail\nA,+7,0,pass\nA,true,0,pass\n"))
    assert set(campaign.instances) == {"007", "1e3", "+7", "true"}


def test_a_quoted_field_may_hold_commas_quotes_and_line_ends(written):
    campaign = read_campaign(written(f'{HEADER},detail\n"A, ""the"" one",i1,0,pass,"two\nlines"\n'))
    assert campaign.candidates == ('A, "the" one',)
    assert campaign.details == {('A, "the" one', "i1", "0"): "two\nlines"}


def test_rows_are_counted_as_a_spreadsheet_counts_them(written):
    with pytest.raises(InputError) as refused:
        read_campaign(written(f'{HEADER},detail\nA,i1,0,pass,"two\nlines"\nA,i2,0,maybe,\n'))
    assert (refused.value.rows, refused.value.column) == ((3,), "outcome")


def test_the_first_of_two_faults_is_named_on_every_run(written):
    for _ in range(3):
        with pytest.raises(InputError) as refused:
            read_campaign(written(f"{HEADER}\nA,i1,0,zz\nA,i1,1,yy\nA,i1,2,xx\n"))
        assert refused.value.rows == (2,)


def test_a_refusal_shows_a_strangers_text_on_one_line_and_cut(written):
    for name in ("a\nb\x1b[31m", "<script>alert(1)</script>", "x" * 5000, "\u202eevil"):
        with pytest.raises(InputError) as refused:
            table.campaign(f'{HEADER}\n"{name}",i1,0,pass\n"{name}",i1,0,pass\n'.encode())
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 600


def test_a_column_name_with_a_line_end_makes_no_second_line_in_a_refusal(written):
    with pytest.raises(InputError) as refused:
        read_campaign(written(f'{HEADER},"co\nst"\nA,i1,0,pass,much\n'))
    assert str(refused.value).isprintable()


def test_a_field_beyond_the_limit_is_named_as_such(written):
    with pytest.raises(InputError, match="a field of more than 131072 characters") as refused:
        read_campaign(written(f"{HEADER},detail\nA,i1,0,pass,{'x' * 140_000}\n"))
    assert refused.value.rows == (2,)


def test_a_blank_number_was_not_measured_and_a_zero_was(written):
    column = read_campaign(written(f"{HEADER},cost\nA,i1,0,pass,\nA,i2,0,pass,0\n")).of("A").columns["cost"]
    assert column.present.tolist() == [[False, True]]


def test_a_gzip_file_reads_like_the_file_in_it(written):
    text = f"{HEADER}\nA,i1,0,pass\n"
    assert read_campaign(written(gzip.compress(text.encode()), "a.csv.gz")).digest == read_campaign(written(text)).digest


def test_a_gzip_that_breaks_off_is_refused(written):
    packed = gzip.compress((f"{HEADER}\n" + "A,i1,0,pass\n" * 1000).encode())
    for content in (packed[:-9], packed[:12], b"\x1f\x8b", packed[:20] + b"x" * 20):
        with pytest.raises(InputError, match="found"):
            read_campaign(written(content, "a.csv.gz"))


@pytest.mark.parametrize("path", ["nothing/here.csv", "a\0b", "x" * 5000, "x/" * 5000])
def test_a_path_that_cannot_be_read_is_refused(path):
    for read in (read_campaign, read_tallies, read_inventory):
        with pytest.raises(InputError):
            read(path)


def test_a_repetition_parameter_that_is_misspelt_is_refused(written):
    path = written(f"{HEADER}\nA,i1,0,pass\n")
    assert read_campaign(path, repetition="order").digest == read_campaign(path).digest
    with pytest.raises(EvalkitError):
        read_campaign(path, repetition="ordr")


def test_an_inventory_brings_the_groups_that_the_campaign_does_not_have(written):
    inventory = written("instance,group,cluster\ni2,safety,c1\ni1,repair,c1\n", "cases.csv")
    assert read_inventory(inventory) == Inventory(("i2", "i1"), ("safety", "repair"), ("c1", "c1"))
    campaign = read_campaign(written(f"{HEADER}\nA,i1,0,pass\n"), inventory=inventory)
    assert (campaign.instances, campaign.groups, campaign.clusters) == (("i1", "i2"), ("repair", "safety"), ("c1", "c1"))


def test_a_tally_reads_periods_and_groups_in_any_order(written):
    tallies = read_tallies(written("requested,group,passed,period,assessed\n4,b,1,June,3\n2,a,1,May,2\n2,a,0,June,2\n"))
    assert list(tallies) == ["June", "May"]
    assert (tallies["June"].groups, tallies["June"].passed, tallies["June"].assessed, tallies["June"].requested) == (
        ("a", "b"),
        (0, 1),
        (2, 3),
        (2, 4),
    )


def test_a_tally_carries_the_bindings_of_its_file(written):
    tallies = read_tallies(written("period,group,passed,assessed,requested,grader_version\nMay,a,1,2,2,v7\n"))
    assert dict(tallies["May"].bindings) == {"grader_version": "v7"}


HOSTILE = [
    b"\0" * 100, b"\xff" * 100, b'"' * 101, b"," * 1000, b"\n" * 1000, b"\r" * 1000, b"PK\x03\x04" + bytes(range(256)), b"SQLite format 3\0", b"%PDF-1.7\n", b"<html><body>404</body></html>",
    b"candidate", HEADER.encode() + b"\n" + b'"' * 99999, HEADER.encode() + b"\nA,i1,0,pass\n" + b"," * 99999, b"\x89PNG\r\n\x1a\n", "\u202e".encode() * 9, b"{", b"[", b"[]", b"{}", b"null", b"[[]]",
    b"[1]", b'[{"task_id": 1}]', b'{"a": ' * 50_000, b"PAR1" + b"\0" * 50 + b"PAR1", b"PK\x05\x06" + b"\0" * 18,
]  # fmt: skip


@pytest.mark.parametrize("content", HOSTILE, ids=lambda content: repr(content[:14]))
def test_a_file_of_another_kind_is_refused_without_a_traceback(content, written):
    for read in (read_campaign, read_tallies, read_inventory):
        with pytest.raises(EvalkitError) as refused:
            read(written(content))
        assert str(refused.value).isprintable()


# tau-bench, the one harness that a reader of the first day brings


def tau(written, *entries, name="gpt-4.json"):
    return written(json.dumps([{"task_id": 0, "trial": 0, "reward": 1.0, "info": {}, **entry} for entry in entries]), name)


def test_a_reward_within_a_millionth_of_one_is_a_pass(written):
    rewards = (1, 1.0, 0.9999995, 1.0000005, 0, 0.0, 0.5, 0.999998)
    campaign = read_campaign(tau(written, *({"task_id": k, "reward": reward} for k, reward in enumerate(rewards))))
    assert campaign.of(campaign.candidates[0]).passed.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_a_harness_error_is_missing_and_a_pass_beside_an_error_is_a_pass(written):
    entries = (
        {"reward": 0.0, "info": {"error": "timed out"}},
        {"trial": 1, "reward": 1.0, "info": {"error": "late"}},
        {"trial": 2, "reward": None},
    )
    campaign = read_campaign(tau(written, *entries))
    assert [campaign.outcome(campaign.candidates[0], "0", r) for r in "012"] == ["error", "pass", "ungraded"]


def test_a_reward_that_is_not_a_number_is_never_a_verdict(written):
    path = written('[{"task_id": 0, "trial": 0, "reward": NaN}, {"task_id": 0, "trial": 1, "reward": 1.0}]', "a.json")
    campaign = read_campaign(path)
    assert campaign.outcome("a", "0", "0") == "ungraded"
    for reward in (True, "1", "pass", [1], {"a": 1}, -0.5, 42):
        with pytest.raises(InputError):
            read_campaign(tau(written, {"reward": reward}))


@pytest.mark.parametrize(
    "number",
    [
        "1e400",
        "-1e400",
        "1e999999999",
        "1e-999999999",
        "1e99999999999999999999999",
        "1e-99999999999999999999999",
        "9" * 5000,
        "Infinity",
        "-Infinity",
    ],
)
def test_a_reward_beyond_any_number_is_refused_at_once(written, number):
    with pytest.raises(InputError):
        read_campaign(written(f'[{{"task_id": 0, "trial": 0, "reward": {number}}}]', "a.json"))


def test_the_number_1_and_the_text_1_are_not_silently_one_task(written):
    with pytest.raises(InputError):
        read_campaign(tau(written, {"task_id": 1}, {"task_id": "1", "trial": 1}))


@pytest.mark.parametrize("task", ["\ud83d", "", " ", None, True, 1.5, [1]])
def test_an_id_that_is_not_text_or_a_whole_number_is_refused(written, task):
    with pytest.raises(InputError):
        read_campaign(tau(written, {"task_id": task}))


def test_a_model_with_a_dot_in_its_name_keeps_it(written):
    for name in ("gpt-4.1-mini.json", "gpt-4.1-nano.json"):
        assert read_campaign(tau(written, {}, name=name)).candidates == (name.removesuffix(".json"),)


def test_a_tau_bench_file_whose_name_names_no_candidate_is_refused(written):
    with pytest.raises(InputError, match="a file name without a candidate"):
        read_campaign(tau(written, {}, name=".json"))


def test_a_mark_before_json_is_harmless(written):
    campaign = read_campaign(written(b"\xef\xbb\xbf" + tau(written, {}).read_bytes(), "a.json"))
    assert cell_mean(campaign.of("a")) == pass_hat(1)(campaign.of("a")) == 1

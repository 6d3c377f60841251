"""Tables and dataframes: every engine, layout and format gives the campaign that the canonical CSV gives, or the same refusal."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit import InputError, read_campaign, read_tallies
from evalkit.campaign import FAIL, PASS, Campaign, Inventory
from evalkit.errors import EvalkitError
from evalkit.sources import frame, table
from evalkit.sources.table import Columns, Requests
from evalkit.tabulate import regroup, tabulate, tabulate_tally

FIXTURES = Path(__file__).parents[1] / "fixtures"
BROKEN = json.loads((FIXTURES / "broken" / "sentences.json").read_text())
CAMPAIGNS = ("claude_merge", "guarded", "one_timeout", "four_repetitions")
ENGINES = {
    "polars": lambda d: d,
    "polars lazy": lambda d: d.lazy(),
    "pandas": lambda d: d.to_pandas(),
    "pyarrow": lambda d: d.to_arrow(),
    "duckdb": lambda d: duckdb.from_arrow(d.to_arrow()),
}


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]


def rows(**columns):
    return pl.DataFrame(columns)


def shuffled(name):
    text = pl.read_csv(FIXTURES / f"{name}.csv", infer_schema=False).fill_null("")
    return text.sample(fraction=1, shuffle=True, seed=1)


REWARDS = rows(model=["a", "a", "b", "b"], task=[1, 2, 1, 2], seed=["0"] * 4, reward=[0.5, 1.0, None, 0.1])
MAPPING = Columns("model", "task", "seed", "reward", passes=">= 0.5", blank="ungraded")


# --- every engine


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_engine_gives_the_campaign_of_the_csv(engine, name):
    wanted = read_campaign(FIXTURES / f"{name}.csv")
    found = frame.campaign_of(engine(shuffled(name)))
    assert (found.digest, found.rows, dict(found.details)) == (wanted.digest, wanted.rows, dict(wanted.details))


def test_a_condition_gives_verdicts_and_exact_scores_in_every_engine(engine):
    found = frame.campaign_of(engine(REWARDS), columns=MAPPING)
    assert found.outcome("a", "1", "0") == "pass"
    assert found.outcome("b", "1", "0") == "ungraded"
    assert found.outcome("b", "2", "0") == "fail"
    assert found.columns["score"].total() == Fraction("0.5") + 1 + Fraction("0.1")
    csv = b"model,task,seed,reward\na,1,0,0.5\na,2,0,1.0\nb,1,0,\nb,2,0,0.1\n"
    assert table.campaign(csv, columns=MAPPING).digest == found.digest


def test_many_different_scores_take_the_road_of_rows_and_agree(engine):
    n = 300
    many = rows(model=["a"] * n, task=list(range(n)), seed=["0"] * n, reward=[k / 300 for k in range(n)])
    found = frame.campaign_of(engine(many), columns=MAPPING)
    assert found.columns["score"].total() == sum(Fraction(repr(k / 300)) for k in range(n))
    assert int(np.count_nonzero(found.codes == PASS)) == sum(Fraction(repr(k / 300)) >= Fraction(1, 2) for k in range(n)) == 150


def test_truth_values_and_whole_numbers_are_verdicts(engine):
    said = Columns("model", "task", "seed", "ok", blank="timeout")
    truth = REWARDS.with_columns(ok=pl.Series([True, False, None, True]))
    whole = REWARDS.with_columns(ok=pl.Series([1, 0, None, 1]))
    found = frame.campaign_of(engine(truth), columns=said)
    assert [found.outcome(*cell, "0") for cell in (("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"))] == ["pass", "fail", "timeout", "pass"]
    if not isinstance(engine(whole), pd.DataFrame):  # there whole numbers with a gap are floats
        assert frame.campaign_of(engine(whole), columns=said).digest == found.digest


def test_wide_is_long(engine):
    long = rows(
        model=["a", "a", "b", "b"] * 2, task=["1", "2"] * 4, seed=["r0"] * 4 + ["r1"] * 4, reward=["T", "F", "T", "", "F", "T", "T", "F"]
    )
    wide = rows(model=["a", "a", "b", "b"], task=["1", "2"] * 2, r0=["T", "F", "T", None], r1=["F", "T", "T", "F"])
    words = {"passes": "T", "fails": "F", "blank": "cancelled"}
    wanted = frame.campaign_of(engine(long), columns=Columns("model", "task", "seed", "reward", **words))
    found = frame.campaign_of(engine(wide), columns="candidate=model; instance=task; wide=r0, r1; passes=T; fails=F; blank=cancelled")
    assert found.digest == wanted.digest
    assert found.outcome("b", "2", "r0") == "cancelled"
    text = b"model,task,r0,r1\na,1,T,F\na,2,F,T\nb,1,T,T\nb,2,,F\n"
    assert table.campaign(text, columns=Columns("model", "task", wide=("r0", "r1"), **words)).digest == wanted.digest


def test_one_hundred_repetitions_take_three_words(engine):
    cells = [("a", i, r, (len(i) * r) % 3 == 0) for i in ("x", "xx") for r in range(100)]
    long = pl.DataFrame(cells, schema=["candidate", "instance", "repetition", "outcome"], orient="row")
    found = frame.campaign_of(engine(long))
    assert found.digest == table.from_rows(long.to_dict(as_series=False)).digest
    assert len(found.repetitions) == 100


def test_more_pairs_than_a_byte_can_number_keep_their_places(engine):
    """300 instances and 3 candidates: the place of a pair does not fit the small integers that number each axis."""
    cells = pl.DataFrame(
        [(c, i, r, int((i + r) % 3 < c)) for c in range(3) for i in range(300) for r in range(2)], list("cirv"), orient="row"
    )
    campaign = frame.campaign_of(engine(cells.sample(fraction=1, shuffle=True, seed=1)), columns=Columns("c", "i", "r", "v"))
    assert campaign.codes.shape == (2, 3, 300)
    for c, i, r, passed in cells.rows():
        assert campaign.codes[r, c, i] == (PASS if passed else FAIL)


def test_a_sample_that_misses_kinds_of_rows_changes_nothing(engine, monkeypatch):
    wanted = frame.campaign_of(engine(shuffled("guarded")))
    monkeypatch.setattr(frame, "_SAMPLE", 1)
    assert frame.campaign_of(engine(shuffled("guarded"))).digest == wanted.digest


def test_groups_clusters_and_an_inventory_survive(engine):
    long = rows(
        candidate=["A", "B"], instance=["i1", "i1"], repetition=[0, 0], outcome=["pass", "fail"], group=["g", "g"], cluster=["c", "c"]
    )
    plan = Inventory(("i1", "i2"), ("g", "h"), ("c", "d"))
    found = frame.campaign_of(engine(long), inventory=plan)
    assert found.digest == table.from_rows(long.to_dict(as_series=False), inventory=plan).digest
    assert (found.groups, found.clusters, found.outcome("A", "i2", "0")) == (("g", "h"), ("c", "d"), "absent")


def test_bindings_come_along_and_two_of_them_are_refused(engine):
    long = rows(candidate=["A", "A"], instance=["i1", "i2"], repetition=["0", "0"], outcome=["pass", "fail"], case_set=["v1", "v1"])
    assert dict(frame.campaign_of(engine(long)).bindings) == {"case_set": "v1"}
    with pytest.raises(InputError, match="'v1' and 'v2'; expected one case_set in a file"):
        frame.campaign_of(engine(long.with_columns(case_set=pl.Series(["v1", "v2"]))))


# --- refusals


@pytest.mark.parametrize("second", ["pass", "fail"])
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_a_double_cell_is_named_whatever_its_bits_add_up_to(engine, second, copies):
    """Two bits of repetition 0 add up to the bit of repetition 1; the row count gives it away."""
    once = [("a", "i", "0", "pass"), ("a", "j", "0", "pass"), ("a", "j", "1", "pass")]
    long = pl.DataFrame(once + [("a", "i", "0", second)] * copies, schema=["candidate", "instance", "repetition", "outcome"], orient="row")
    with pytest.raises(InputError, match=rf"{copies + 1} rows for the cell \('a', 'i', repetition '0'\)"):
        frame.campaign_of(engine(long))


def test_an_instance_in_two_groups_is_refused(engine):
    long = rows(candidate=["A", "B"], instance=["i1", "i1"], repetition=[0, 0], outcome=["pass", "fail"], group=["g", "h"])
    with pytest.raises(InputError, match="instance 'i1' in group 'g' and in group 'h'"):
        frame.campaign_of(engine(long))
    same = long.with_columns(candidate=pl.lit("A"), repetition=pl.Series([0, 1]))
    with pytest.raises(InputError, match="instance 'i1' in group 'g' and in group 'h'"):
        frame.campaign_of(engine(same))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": ["a", None, "b", "b"]}, "a blank model"),
        ({"model": ["a", "a ", "b", "b"]}, "'a ' with a space at an end"),
        ({"task": [1, None, 1, 2]}, "a blank task|1.0|nan"),
        ({"seed": ["0", "", "0", "0"]}, "a blank seed"),
        ({"reward": ["good", "bad", "", "0.1"]}, "found 'bad' where passes is '>= 0.5'|found 'good' where passes is '>= 0.5'"),
        ({"reward": [0.1, 0.2, None, 0.3]}, "no row that passes '>= 0.5' among"),
    ],
)
def test_bad_ids_and_outcomes_are_refused_in_every_engine(engine, change, sentence):
    with pytest.raises(InputError, match=sentence):
        frame.campaign_of(engine(REWARDS.with_columns(**{name: pl.Series(values) for name, values in change.items()})), columns=MAPPING)


def test_floats_need_a_condition_and_nulls_a_meaning(engine):
    with pytest.raises(InputError, match='say which numbers pass: passes="== 1"'):
        frame.campaign_of(engine(REWARDS), columns=Columns("model", "task", "seed", "reward", blank="error"))
    with pytest.raises(InputError, match='say what a null stands for: blank="ungraded"'):
        frame.campaign_of(engine(REWARDS), columns=Columns("model", "task", "seed", "reward", passes=">= 0.5"))


def test_a_mapping_of_a_column_that_is_not_there_is_refused(engine):
    with pytest.raises(
        InputError, match="no column modle among 'model', 'task', 'seed', 'reward'; expected the declared columns 'candidate=modle'"
    ):
        frame.campaign_of(engine(REWARDS), columns=Columns("modle", "task", "seed", "reward"))


def test_rows_without_an_order_are_not_numbered():
    with pytest.raises(InputError, match="rows without an order"):
        frame.campaign_of(ENGINES["duckdb"](REWARDS), columns=Columns("model", "task", "order", "reward", passes="== 1", blank="error"))


def test_what_is_no_frame_is_refused():
    with pytest.raises(InputError, match="found a list; expected a dataframe of pandas, Polars"):
        frame.campaign_of([1, 2])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("candidate=a; candidate=b", "'candidate=b' in columns"),
        ("model=a", "one of candidate, instance, repetition"),
        ("passes=>= half", "found 'half'; expected a finite decimal number"),
        ("passes=T", "passes 'T' and fails ''; expected both"),
        ("passes=> 0; fails=F", "remove fails"),
        ("blank=unknown", "blank 'unknown'; expected one of absent, pass, fail"),
    ],
)
def test_a_declaration_that_says_nothing_clear_is_refused(text, sentence):
    with pytest.raises(InputError, match=sentence):
        Columns.parse(text)


CELLS = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from("xyz"), st.sampled_from("012"), st.sampled_from(["pass", "fail", "timeout", "TRUE", "0"])),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(CELLS)
def test_the_bits_say_what_the_rows_say(cells):
    """The group-by and the row-by-row reader are two routes to one campaign, or to one refusal."""
    long = pl.DataFrame(cells, schema=["candidate", "instance", "repetition", "outcome"], orient="row")
    answers = []
    for read in (lambda: frame.campaign_of(long), lambda: table.from_rows(long.to_dict(as_series=False))):
        try:
            answers.append(read().digest)
        except EvalkitError as refusal:
            answers.append(str(refusal))
    assert answers[0] == answers[1]


# --- files


def written(folder, data, how):
    """The same rows in a format; returns its path."""
    path = folder / f"rows.{how}"
    if how == "parquet":
        data.write_parquet(path)
    elif how == "jsonl":
        data.write_ndjson(path)
    elif how == "json":
        data.write_json(path)
    else:
        packed = data.write_csv(separator="\t" if how.startswith("tsv") else ",").encode()
        path.write_bytes(gzip.compress(packed) if how.endswith("gz") else zstandard.compress(packed) if how.endswith("zst") else packed)
    return path


@pytest.mark.parametrize("how", ["csv", "csv.gz", "csv.zst", "tsv", "parquet", "jsonl", "json"])
def test_every_format_gives_the_same_campaign(tmp_path, how):
    wanted = frame.campaign_of(REWARDS, columns=MAPPING)
    text = "candidate=model; instance=task; repetition=seed; outcome=reward; passes=>= 0.5; blank=ungraded"
    assert read_campaign(written(tmp_path, REWARDS, how), columns=text).digest == wanted.digest


def test_json_keys_inside_keys_are_named_with_dots():
    lines = b'{"model": "a", "doc": {"id": 1}, "metadata": {"rep": 0}, "ok": true}\n{"model": "a", "doc": {"id": 2}, "metadata": {"rep": 0}, "ok": false}\n'
    found = table.campaign(lines, columns=Columns("model", "doc.id", "metadata.rep", "ok"))
    assert (found.instances, found.codes.ravel().tolist()) == (("1", "2"), [PASS, FAIL])


def test_a_json_id_as_number_and_as_text_is_refused():
    with pytest.raises(InputError, match="row 2, column task: found 1 both as a number and as text"):
        table.from_rows(
            {"model": ["a", "a"], "task": [1, "1"], "seed": ["0", "0"], "ok": [True, False]}, Columns("model", "task", "seed", "ok")
        )


def test_a_parquet_file_that_breaks_off_is_refused(tmp_path):
    whole = written(tmp_path, REWARDS, "parquet").read_bytes()
    with pytest.raises(InputError, match="Parquet that cannot be read"):
        table.campaign(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    "name", [name for name, case in BROKEN.items() if case["reader"] == "campaign" and name.endswith((".csv", ".csv.gz"))]
)
def test_a_large_file_is_refused_in_the_words_of_a_small_one(name, monkeypatch):
    """The fast road is taken only where there is nothing to say."""
    monkeypatch.setattr(table, "_LARGE", 0)
    args = dict(BROKEN[name].get("args", {}))
    if "inventory" in args:
        args["inventory"] = FIXTURES / "broken" / args["inventory"]
    if "sentence" not in BROKEN[name]:
        assert read_campaign(FIXTURES / "broken" / name, **args).rows
        return
    with pytest.raises(EvalkitError) as refusal:
        read_campaign(FIXTURES / "broken" / name, **args)
    assert str(refusal.value).replace(str(FIXTURES / "broken") + "/", "") == BROKEN[name]["sentence"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_plain_large_csv_takes_the_fast_road_and_agrees(end, last, mark, monkeypatch):
    text = mark + (FIXTURES / "one_timeout.csv").read_text().replace("\n", end)
    data = (text if last else text.removesuffix(end)).encode()
    wanted = table.campaign(data)
    roads = []
    fast = frame.plain_csv
    monkeypatch.setattr(table, "_LARGE", 0)
    monkeypatch.setattr(frame, "plain_csv", lambda *given: roads.append(fast(*given)) or roads[-1])
    assert table.campaign(data).digest == wanted.digest
    assert isinstance(roads[0], Campaign)


@pytest.mark.parametrize("row", ["A,i2,0", "A,i2,0,pass,extra", 'A,"i2,x",0,pass', "A,i2,0,pass\r", "", "A,i\u00e92,0,pass"])
def test_one_odd_row_never_slips_through_the_fast_road(row, monkeypatch):
    data = ("candidate,instance,repetition,outcome\nA,i1,0,pass\n" + row + "\nA,i3,0,fail\n").encode()

    def answer():
        try:
            return table.campaign(data).digest
        except EvalkitError as refusal:
            return str(refusal)

    strict = answer()
    monkeypatch.setattr(table, "_LARGE", 0)
    assert answer() == strict


# --- tallies


def requests():
    """One row per request of the published tallies."""
    out = []
    for period, t in read_tallies().items():
        for group, passed, assessed, requested in zip(t.groups, t.passed, t.assessed, t.requested, strict=True):
            out += [
                (period, group, k < passed if k < assessed else None, f"{period}-{group}-{k}", f"user{k % 7}") for k in range(requested)
            ]
    return pl.DataFrame(out, schema=["period", "group", "outcome", "request", "user"], orient="row").sample(
        fraction=1, shuffle=True, seed=3
    )


def test_production_rows_give_the_published_tallies(engine):
    found = frame.tally(engine(requests()), columns="request=request; cluster=user")
    assert found == read_tallies()
    assert found["baseline"].notes == ("7 clusters: requests of one cluster are not independent",)
    assert frame.tally(engine(requests().drop("request")))["baseline"].notes == ("no request ids: duplicates not checked",)


def test_ready_made_counts_are_checked_and_kept(engine):
    counts = pl.read_csv(FIXTURES / "traffic_mix.csv")
    assert frame.tally(engine(counts)) == read_tallies()
    with pytest.raises(InputError, match="passed 91, assessed 90, requested 100"):
        frame.tally(engine(rows(period=["p"], group=["g"], passed=[91], assessed=[90], requested=[100])))


def test_an_inventory_of_requests_shows_what_nobody_assessed(engine):
    plan, late = requests().select("period", "group", "request"), "baseline-routine-5"
    seen = requests().filter(pl.col("request") != late).select("request", "outcome")
    found = frame.tally(engine(seen), columns="request=request", inventory=engine(plan))
    assert (found["baseline"].assessed, found["baseline"].requested) == ((900, 99), (900, 100))
    assert found["candidate"] == read_tallies()["candidate"]
    with pytest.raises(InputError, match=f"requests outside the declared inventory: {late}"):
        frame.tally(engine(requests()), inventory=engine(plan.filter(pl.col("request") != late)))
    moved = plan.with_columns(group=pl.when(pl.col("request") == late).then(pl.lit("complex")).otherwise("group"))
    with pytest.raises(InputError, match=f"request '{late}' in group 'routine'; expected 'complex', as the inventory declares"):
        frame.tally(engine(requests()), inventory=engine(moved))


def test_a_request_that_is_double_or_in_two_groups_is_refused(engine):
    again = requests().filter(pl.col("request") == "baseline-routine-5")
    with pytest.raises(InputError, match="request 'baseline-routine-5' 2 times; expected one row per request"):
        frame.tally(engine(pl.concat([requests(), again])))
    with pytest.raises(InputError, match="request 'baseline-routine-5' 2 times in groups other, routine"):
        frame.tally(engine(pl.concat([requests(), again.with_columns(group=pl.lit("other"))])))


def test_null_groups_and_endless_groups_are_refused(engine):
    gaps = requests().with_columns(
        group=pl.when(pl.col("outcome").is_null() | (pl.col("group") == "routine")).then(None).otherwise("group")
    )
    with pytest.raises(InputError, match="column group: found 1000 rows with a blank group"):
        frame.tally(engine(gaps))
    many = rows(period=["p"] * 10_001, group=[f"g{k}" for k in range(10_001)], outcome=["pass"] * 10_001)
    with pytest.raises(InputError, match="more than 10000 groups"):
        frame.tally(engine(many))


def test_reasons_are_requested_and_not_assessed(engine):
    some = rows(period=["p"] * 4, group=["g"] * 4, outcome=["pass", "fail", "timeout", None])
    t = frame.tally(engine(some), columns=Requests())["p"]
    assert (t.passed, t.assessed, t.requested) == ((1,), (2,), (4,))


# --- tabulate


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_canonical_table_reads_back_as_the_same_campaign(tmp_path, name):
    source = FIXTURES / f"{name}.csv"
    tabulate(source, tmp_path / "a.csv")
    tabulate(tmp_path / "a.csv", tmp_path / "b.csv")
    assert read_campaign(tmp_path / "a.csv").digest == read_campaign(source).digest
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize(
    "number", ["0.1", "-2.5e-7", "1e300", "5e-324", "9.797693134862315e307", "0", "12345678901234567890", "0.30000000000000004"]
)
def test_a_measured_number_is_written_as_it_is(tmp_path, number):
    (tmp_path / "a.csv").write_text(f"candidate,instance,repetition,outcome,cost\nA,i,0,pass,{number}\nA,j,0,absent,\n")
    tabulate(tmp_path / "a.csv", tmp_path / "b.csv")
    found = read_campaign(tmp_path / "b.csv")
    assert found.columns["cost"].total() == Fraction(number)
    assert found.digest == read_campaign(tmp_path / "a.csv").digest


def test_a_name_like_a_formula_stays_that_name_and_is_noted(tmp_path):
    (tmp_path / "a.csv").write_text("candidate,instance,repetition,outcome,detail\n=1+1,@i,0,error,=cmd()\n")
    notes = tabulate(tmp_path / "a.csv", tmp_path / "b.csv")
    found = read_campaign(tmp_path / "b.csv")
    assert (found.candidates, found.instances, dict(found.details)) == (("=1+1",), ("@i",), {("=1+1", "@i", "0"): "'=cmd()"})
    assert found.digest == read_campaign(tmp_path / "a.csv").digest
    assert notes[-1].startswith("2 names begin like a formula (=1+1, @i)")


def test_a_declared_instance_that_nobody_ran_is_a_row(tmp_path):
    (tmp_path / "i.csv").write_text("instance\ni1\ni2\n")
    (tmp_path / "a.csv").write_text("candidate,instance,repetition,outcome\nA,i1,0,pass\n")
    notes = tabulate(tmp_path / "a.csv", tmp_path / "b.csv", inventory=str(tmp_path / "i.csv"))
    assert "A,i2,0,absent" in (tmp_path / "b.csv").read_text()
    both = [read_campaign(tmp_path / name, inventory=tmp_path / "i.csv").digest for name in ("a.csv", "b.csv")]
    assert both[0] == both[1]
    assert "read it again with the same inventory" in notes


def test_an_output_is_a_new_csv(tmp_path):
    (tmp_path / "a.csv").write_text("candidate,instance,repetition,outcome\nA,i1,0,pass\n")
    for output, sentence in (
        ("a.csv", "an output that is an input"),
        ("a.json", "a name that ends in .csv"),
        ("no/a.csv", "no place to write"),
    ):
        with pytest.raises(InputError, match=sentence):
            tabulate(tmp_path / "a.csv", tmp_path / output)


@pytest.mark.parametrize("how", ["csv", "csv.gz", "parquet", "jsonl", "json"])
def test_requests_in_any_format_become_the_canonical_tally(tmp_path, how):
    notes = tabulate_tally(written(tmp_path, requests(), how), tmp_path / "t.csv", grader_version="v2")
    found = read_tallies(tmp_path / "t.csv")
    assert {period: (t.passed, t.assessed) for period, t in found.items()} == {
        period: (t.passed, t.assessed) for period, t in read_tallies().items()
    }
    assert found["baseline"].bindings["grader_version"] == "v2"
    assert notes[-1] == "2000 of 2000 requests assessed"


def test_a_mapping_of_groups_is_a_new_grouping_rule(tmp_path):
    mapping = {"grouping_rule": "one group", "groups": {"routine": "any", "complex": "any"}}
    (tmp_path / "g.json").write_text(json.dumps(mapping))
    found = regroup(read_tallies(), tmp_path / "g.json")["baseline"]
    assert (found.passed, found.assessed, found.requested) == ((450,), (1000,), (1000,))
    rule = found.bindings["grouping_rule"]
    assert rule.startswith("one group sha256:")
    (tmp_path / "g.json").write_text(json.dumps({**mapping, "groups": {"routine": "any", "complex": "other"}}))
    assert regroup(read_tallies(), tmp_path / "g.json")["baseline"].bindings["grouping_rule"] != rule
    (tmp_path / "g.json").write_text(json.dumps({**mapping, "groups": {"routine": "any"}}))
    with pytest.raises(InputError, match=r"groups that the mapping does not name: complex \(900 assessed of 900\)"):
        regroup(read_tallies(), tmp_path / "g.json")

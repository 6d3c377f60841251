"""PySpark and Dask in local mode give the campaign, the tallies and the refusals that the canonical CSV gives."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from evalkit import InputError, decide, read_campaign, read_rule, read_tallies
from evalkit.records import canonical, decision_record
from evalkit.sources import frame
from evalkit.sources.table import Columns

FIXTURES = Path(__file__).parents[2] / "fixtures"
pytestmark = pytest.mark.filterwarnings("ignore")  # the engines' own, about each other's versions


@pytest.fixture(scope="module", params=["pyspark", "dask"])
def engine(request):
    if request.param == "dask":
        dask = pytest.importorskip("dask.dataframe")
        yield lambda d: dask.from_pandas(d.to_pandas(), npartitions=2)
        return
    sql = pytest.importorskip("pyspark.sql")
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR"}
    spark = sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    types = {"str": "string", "bool": "boolean", "i64": "bigint", "f64": "double"}
    short = {pl.String: "str", pl.Boolean: "bool", pl.Int64: "i64", pl.Float64: "f64"}

    def made(d):
        schema = ", ".join(f"`{name}` {types[short[dtype]]}" for name, dtype in d.schema.items())
        return spark.createDataFrame(d.rows(), schema)

    yield made
    spark.stop()


def shuffled(name):
    text = pl.read_csv(FIXTURES / f"{name}.csv", infer_schema=False).fill_null("")
    return text.sample(fraction=1, shuffle=True, seed=1)


@pytest.mark.parametrize("name", ["claude_merge", "guarded", "one_timeout", "four_repetitions"])
def test_an_engine_gives_the_campaign_of_the_csv(engine, name):
    wanted = read_campaign(FIXTURES / f"{name}.csv")
    found = frame.campaign_of(engine(shuffled(name)))
    assert (found.digest, found.rows, dict(found.details)) == (wanted.digest, wanted.rows, dict(wanted.details))


def test_an_engine_gives_the_decision_record_of_the_csv(engine):
    rule = read_rule()
    campaigns = (read_campaign(FIXTURES / "claude_merge.csv"), frame.campaign_of(engine(shuffled("claude_merge"))))
    records = [canonical(decision_record(each, rule, decide(each, rule, incumbent="BASELINE"))) for each in campaigns]
    assert records[0] == records[1]


def test_a_wide_table_of_numbers_gives_the_verdicts_and_scores_of_polars(engine):
    wide = pl.DataFrame({"model": ["a", "a", "b", "b"], "task": [1, 2, 1, 2], "r0": [0.5, 1.0, None, 0.1], "r1": [0.5, 0.25, 1.0, 0.1]})
    said = Columns("model", "task", wide=("r0", "r1"), passes=">= 0.5", blank="ungraded")
    found, wanted = frame.campaign_of(engine(wide), columns=said), frame.campaign_of(wide, columns=said)
    assert found.digest == wanted.digest
    assert found.columns["score"].total() == wanted.columns["score"].total()


@pytest.mark.parametrize("copies", [1, 3])
def test_a_double_cell_is_named(engine, copies):
    twice = shuffled("claude_merge").filter(pl.col("candidate") == "MERGE").head(1)
    with pytest.raises(InputError, match=f"{copies + 1} rows for the cell"):
        frame.campaign_of(engine(pl.concat([shuffled("claude_merge"), *[twice] * copies])))


def test_an_instance_in_two_groups_is_refused(engine):
    odd = pl.DataFrame(
        {"candidate": ["A", "B"], "instance": ["i", "i"], "repetition": ["0", "0"], "outcome": ["pass", "fail"], "group": ["g", "h"]}
    )
    with pytest.raises(InputError, match="instance 'i' in group 'g' and in group 'h'"):
        frame.campaign_of(engine(odd))


def test_rows_have_no_order(engine):
    with pytest.raises(InputError, match="rows without an order"):
        frame.campaign_of(engine(shuffled("claude_merge")), columns=Columns(repetition="order"))


def requests():
    out = []
    for period, t in read_tallies().items():
        for group, passed, requested in zip(t.groups, t.passed, t.requested, strict=True):
            out += [(period, group, k < passed, f"{period}-{group}-{k}") for k in range(requested)]
    return pl.DataFrame(out, schema=["period", "group", "outcome", "request"], orient="row").sample(fraction=1, shuffle=True, seed=3)


def test_production_rows_give_the_published_tallies(engine):
    assert frame.tally(engine(requests())) == read_tallies()
    plan = requests().select("period", "group", "request")
    late = frame.tally(engine(requests().select("request", "outcome").head(1990)), columns="request=request", inventory=engine(plan))
    assert sum(sum(t.assessed) for t in late.values()) == 1990
    assert sum(sum(t.requested) for t in late.values()) == 2000


def test_double_requests_and_null_groups_are_refused(engine):
    with pytest.raises(InputError, match="2 times; expected one row per request"):
        frame.tally(engine(pl.concat([requests(), requests().head(1)])))
    gaps = requests().with_columns(group=pl.when(pl.col("group") == "routine").then(None).otherwise("group"))
    with pytest.raises(InputError, match="found 1000 rows with a blank group"):
        frame.tally(engine(gaps))

"""One contender in a process of its own: ``python -m tests.bench.child NAME FILE`` prints its seconds, answer and peak memory.

Each contender is a generator: what it does before its first ``yield`` is imported and not timed; the second gives the answer,
for each candidate the instances that passed in every repetition, and the cells that passed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Run = Iterator[dict[str, Any]]
READY: dict[str, Any] = {}


def peak() -> float:
    """The most memory that this process has held, in MB. On Linux ``ru_maxrss`` would include the parent at its start."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def evalkit(path: Path) -> Run:
    """Everything that the kit does between a file and a verdict: read, check, decide, digest."""
    from evalkit import decide, read_rule
    from evalkit.sources import frame, read_campaign  # noqa: F401 (the import of Polars is not timed for the others either)

    yield READY
    campaign = read_campaign(path)
    decision = decide(campaign, read_rule(), incumbent=campaign.candidates[0])
    assert len(campaign.digest) == 64
    yield {s.candidate: [s.key[0], s.passed] for s in decision.standings}


def evalkit_file(path: Path) -> Run:
    """A tool's own file as a campaign, and its counts."""
    from evalkit import fail_closed, passing_cells
    from evalkit.sources import read_campaign

    yield READY
    campaign = read_campaign(path)
    yield {name: [fail_closed(campaign.of(name)), passing_cells(campaign.of(name))] for name in campaign.candidates}


def polars(path: Path) -> Run:
    import polars as pl

    yield READY
    scan = pl.scan_csv(path) if path.suffix == ".csv" else pl.scan_parquet(path)
    pairs = scan.group_by("candidate", "instance").agg(passed=(pl.col("outcome") == "pass").sum(), planned=pl.len())
    whole = pairs.group_by("candidate").agg(held=(pl.col("passed") == pl.col("planned")).sum(), passed=pl.col("passed").sum())
    yield {name: [held, passed] for name, held, passed in whole.collect(engine="streaming").iter_rows()}


def pandas(path: Path) -> Run:
    import pandas as pd

    yield READY
    needed = ["candidate", "instance", "outcome"]
    rows = pd.read_csv(path, usecols=needed) if path.suffix == ".csv" else pd.read_parquet(path, columns=needed)
    rows["passed"] = rows["outcome"] == "pass"
    pairs = rows.groupby(["candidate", "instance"], sort=False)["passed"].agg(["sum", "size"])
    pairs["held"] = pairs["sum"] == pairs["size"]
    whole = pairs.groupby("candidate").agg({"held": "sum", "sum": "sum"})
    yield {name: [int(held), int(passed)] for name, held, passed in whole.itertuples()}


def duckdb(path: Path) -> Run:
    import duckdb as db

    yield READY
    pairs = f"select candidate, instance, count(*) filter (outcome = 'pass') passed, count(*) planned from '{path}' group by all"
    whole = db.sql(f"select candidate, count(*) filter (passed = planned), sum(passed) from ({pairs}) group by candidate").fetchall()
    yield {name: [held, int(passed)] for name, held, passed in whole}


def inspect_log(path: Path) -> Run:
    from inspect_ai.log import read_eval_log

    yield READY
    log = read_eval_log(str(path))
    yield _counted((log.eval.model, s.id, s.scores["match"].value == "C") for s in log.samples)


def inspect_samples(path: Path) -> Run:
    from inspect_ai.log import read_eval_log, read_eval_log_samples

    yield READY
    model = read_eval_log(str(path), header_only=True).eval.model
    yield _counted((model, s.id, s.scores["match"].value == "C") for s in read_eval_log_samples(str(path)))


def zip_loop(path: Path) -> Run:
    import zipfile_zstd  # noqa: F401 (teaches zipfile the method that inspect-ai writes)

    yield READY
    with zipfile.ZipFile(path) as log:
        model = json.loads(log.read("header.json"))["eval"]["model"]
        samples = (json.loads(log.read(name)) for name in log.namelist() if name.startswith("samples/"))
        yield _counted((model, s["id"], s["scores"]["match"]["value"] == "C") for s in samples)


def json_loop(path: Path) -> Run:
    yield READY
    with path.open() as stream:
        rows = json.load(stream)["results"]["results"]
    yield _counted((row["provider"]["label"], row["testCase"]["description"], row["success"]) for row in rows)


def _counted(rows: Iterator[tuple[str, Any, bool]]) -> dict[str, Any]:
    passed: dict[tuple[str, Any], list[bool]] = defaultdict(list)
    for candidate, instance, good in rows:
        passed[candidate, instance].append(good)
    out: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (candidate, _), cells in passed.items():
        out[candidate][0] += all(cells)
        out[candidate][1] += sum(cells)
    return dict(out)


def engine(name: str, path: Path, rounds: int) -> dict[str, Any]:
    """A session of Spark or Dask, its own bare group-by and the kit's, in turn; the medians, once both found the same."""
    import polars as pl

    from evalkit import decide, read_rule
    from evalkit.sources import frame

    from .measure import in_turn, timed

    if name == "spark":
        from pyspark.sql import SparkSession, functions

        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "6g",
            "spark.driver.maxResultSize": "4g",
            "spark.log.level": "ERROR",
        }
        spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()

        def read() -> Any:
            return spark.read.parquet(str(path))

        def pairs(rows: Any) -> Any:
            passed = functions.sum((functions.col("outcome") == "pass").cast("int"))
            found = rows.groupBy("candidate", "instance").agg(passed.alias("passed"), functions.count("*").alias("planned"))
            return pl.from_arrow(found.toArrow())
    else:
        import dask.dataframe

        def read() -> Any:
            return dask.dataframe.read_parquet(path)

        def pairs(rows: Any) -> Any:
            rows = rows.assign(passed=(rows["outcome"] == "pass").astype("int64"))
            found = rows.groupby(["candidate", "instance"]).agg({"passed": "sum", "outcome": "count"}).reset_index().compute()
            return pl.from_pandas(found.rename(columns={"outcome": "planned"}))

    def bare() -> dict[str, Any]:
        held = (pl.col("passed") == pl.col("planned")).sum().alias("held")
        return {c: [h, p] for c, h, p in pairs(read()).group_by("candidate").agg(held, pl.col("passed").sum()).iter_rows()}

    def ours() -> dict[str, Any]:
        campaign = frame.campaign_of(read())
        decision = decide(campaign, read_rule(), incumbent=campaign.candidates[0])
        return {"digest": campaign.digest, **{s.candidate: [s.key[0], s.passed] for s in decision.standings}}

    bare()  # a first job sets the engine up
    return {name: vars(sample) for name, sample in in_turn({"evalkit": timed(ours), "bare group-by": timed(bare)}, rounds).items()}


if __name__ == "__main__":
    wanted, path, *more = sys.argv[1:]
    if wanted == "engine":
        print(json.dumps(engine(more[0], Path(path), int(more[1]))))
        sys.exit()
    run = globals()[wanted](Path(path))
    next(run)
    before, start = peak(), time.perf_counter()
    found = next(run)
    print(json.dumps({"seconds": time.perf_counter() - start, "answer": found, "peak": peak(), "imports": before}))

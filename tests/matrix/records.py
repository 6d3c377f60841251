"""The digest of every decision and comparison record that the fixtures give: ``python tests/matrix/records.py > tests/matrix/records.json``.

The records are bytes that no machine, Python, package version, engine, locale, time zone or order of rows may change. A refusal is
recorded by its sentence, which may not change either.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import locale
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evalkit import Campaign, EvalkitError, decide, read_campaign, read_rule, report, show
from evalkit.records import canonical, decision_record
from evalkit.sources import frame

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CAMPAIGNS = sorted(path.name for path in FIXTURES.glob("*.csv") if path.read_text("utf-8").startswith("candidate,"))
TALLIES = sorted(path.name for path in FIXTURES.glob("*.csv") if path.read_text("utf-8").startswith("period,"))
RULES = sorted(path.name for path in FIXTURES.glob("*_rule.json"))
SOURCES: dict[str, dict[str, Any]] = {
    "inspect": {"scorer": "match"},
    "promptfoo/results.json": {},
    "tau_bench": {},
    "tau2_bench": {},
    "terminal_bench": {},
    "openai_evals": {},
    "deepeval": {},
    "langsmith": {},
    "swe_bench": {},
    "braintrust.jsonl": {"scorer": "match"},
    "langfuse.jsonl": {},
}
ENGINES = ("pandas", "pyarrow", "duckdb", "parquet")


def said(make: Callable[[], str]) -> str:
    """The digest of a text, or of the sentence that refuses it."""
    try:
        text = make()
    except EvalkitError as refusal:
        text = f"refused: {refusal}".replace(str(FIXTURES), "")
    return hashlib.sha256(text.encode()).hexdigest()


def told(found: report.Release | report.Mix) -> str:
    """The record, and what the page and the terminal say of it."""
    record = found.record
    words = (
        show.verdict(found.campaign, found.rule, found.decision, demonstration=False, bound=found.bound).text
        if isinstance(found, report.Release)
        else record["verdict"]
    )
    return canonical(record) + report.summary(words, record)


def shuffled(name: str) -> str:
    """The same rows in another order, another one for each hash seed, written into the working folder."""
    header, *rows = (FIXTURES / name).read_text("utf-8").splitlines()
    random.Random(hash("rows")).shuffle(rows)
    text = "\n".join([header, *rows]) + "\n"
    Path(name).write_text(text, "utf-8")
    return text


def in_engine(engine: str, text: str) -> Campaign:
    """A campaign from the same CSV in an engine."""
    if engine == "pandas":
        import pandas as pd

        return frame.campaign_of(pd.read_csv(io.StringIO(text), dtype=str))
    if engine == "duckdb":
        import duckdb

        Path("engine.csv").write_text(text, "utf-8")
        with duckdb.connect() as connection:
            return frame.campaign_of(connection.read_csv("engine.csv", all_varchar=True))
    import polars as pl

    rows = pl.read_csv(text.encode(), infer_schema=False)
    if engine == "pyarrow":
        return frame.campaign_of(rows.to_arrow())
    rows.write_parquet("engine.parquet")
    return read_campaign("engine.parquet")


def digests() -> Iterator[tuple[str, str]]:
    """Every record by a name that says what made it."""
    for name in CAMPAIGNS:
        incumbents = sorted({line.split(",")[0] for line in shuffled(name).splitlines()[1:]})
        for rule in RULES:
            for incumbent in (*incumbents, "none"):
                given = {"campaign": name, "rule": str(FIXTURES / rule), "incumbent": incumbent}
                yield f"{name}, {rule}, {incumbent}", said(lambda given=given: told(report.release(**given)))
    margin = json.loads((FIXTURES / "fail_closed_rule.json").read_text("utf-8")) | {"margin": "-1/4"}
    Path("margin.json").write_text(json.dumps(margin), "utf-8")
    yield "a margin", said(lambda: told(report.release(rule="margin.json")))
    for name in TALLIES:
        periods = sorted({line.split(",")[0] for line in shuffled(name).splitlines()[1:]})
        given = {"tallies": name, "baseline": periods[0], "candidate": periods[-1]}
        yield name, said(lambda given=given: told(report.mix(**given)))
    for name, options in SOURCES.items():
        found, rule = read_campaign(FIXTURES / "sources" / name, **options), read_rule("")
        decision = decide(found, rule, incumbent=found.candidates[0])
        yield name, said(lambda made=(found, rule, decision): canonical(decision_record(*made)))


def engine_digests() -> dict[str, list[str]]:
    """Per fixture, the digests of its campaign in every engine; they are one digest."""
    return {
        name: [read_campaign(FIXTURES / name).digest, *(in_engine(engine, shuffled(name)).digest for engine in ENGINES)]
        for name in CAMPAIGNS
    }


def main() -> int:
    """Print the digests; with --engines, see that every engine reads the same; with --check, compare with what is kept."""
    with contextlib.suppress(locale.Error):  # a program that calls the kit may have done so
        locale.setlocale(locale.LC_ALL, "")
    with tempfile.TemporaryDirectory() as made, contextlib.chdir(made):
        found = dict(digests())
        unlike = {name: each for name, each in engine_digests().items() if len(set(each)) > 1} if "--engines" in sys.argv else {}
    print(f"{len(found)} records, decimal point {locale.localeconv()['decimal_point']}", file=sys.stderr)
    if unlike:
        print(f"engines that read another campaign: {unlike}", file=sys.stderr)
        return 1
    if "--check" not in sys.argv:
        print(json.dumps(found, indent=1))
        return 0
    kept = json.loads(Path(__file__).with_name("records.json").read_text("utf-8"))
    differences = sorted(name for name in {*found, *kept} if found.get(name) != kept.get(name))
    print(f"{len(differences)} other than those kept", *differences, sep="\n  ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())

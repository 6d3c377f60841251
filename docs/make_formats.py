"""Write docs/formats.md, the page of every input that the kit reads: ``python docs/make_formats.py``, from anywhere.

Each example is a small made file under ``fixtures/sources/``, and each result below a command is what that command says.
"""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from evalkit import report, show
from evalkit.errors import plain
from evalkit.sources import FORMATS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MADE = "fixtures/sources"


class Entry(NamedTuple):
    """One input: where its example is, what to show of it, how to read it, and what its fields become."""

    paths: str
    shown: str
    given: dict[str, str]
    candidate: str
    instance: str
    repetition: str
    passes: str
    missing: str
    note: str = ""


UNCHECKED = "This mapping follows the documentation of the tool, not an export of it: compare a few cells with what the tool shows."

TOOLS = {
    "Inspect log": Entry(
        "inspect", "inspect/beta.json", {"scorer": "match"}, "`eval.model`", "sample `id`", "`epoch`", "`C`, or 1",
        "a sample with an `error`, or no score",
        "`.eval` and `.json` logs. A log has a score per scorer, so name one. Logs of several tasks in one folder: `-p task NAME`. A run that "
        "was retried: `-p keep last`.",
    ),
    "promptfoo results": Entry(
        "promptfoo/results.json", "promptfoo/results.json", {}, "the provider's `label`, else its `id`", "the test's description, else its variables",
        "the order of `testIdx`", "`success`", "`failureReason` 2, an error",
        "The file of `promptfoo eval -o results.json`, or `.jsonl`. Run with `--no-cache`: a cached row repeats one answer, and is named.",
    ),
    "lm-evaluation-harness samples": Entry(
        "lm_eval", "lm_eval/alpha/samples_made_2026-01-05T10-00-00.000000.jsonl", {"scorer": "exact_match,first"},
        "`model_name` in the `results_*.json` beside it, else the folder", "`doc_id`", "one per file", "the metric is 1", "the metric is null",
        "Keep both files of a run (`--log_samples`). A row has a metric per filter, so name the pair.",
    ),
    "tau-bench results": Entry(
        "tau_bench", "tau_bench/alpha.json", {}, "the name of the file", "`task_id`", "`trial`", "`reward` 1", "`info.error`",
    ),
    "tau2-bench results": Entry(
        "tau2_bench", "tau2_bench/alpha.json", {}, "`info.agent_info.llm`", "`task_id`", "`trial`", "`reward` 1",
        "a trial that was dropped, or ended without a reward", "tau3-bench too. One `results.json`, or one beside a folder `simulations`.",
    ),
    "terminal-bench results": Entry(
        "terminal_bench", "terminal_bench/beta/results.json", {}, "`run_metadata.json` beside it, else the folder", "`task_id`",
        "`1-of-2` in `trial_name`, else one per file", "`is_resolved`", "`is_resolved` null",
        "Name the folder above the runs; logs among them are left aside.",
    ),
    "harbor trials": Entry(
        "harbor", "harbor/job/i1__a0x01/result.json", {"candidate_names": "made-agent with alpha=alpha; made-agent with beta=beta"},
        "`agent_info.name` with its model", "`task_name`", "the order of `started_at`", "`rewards` 1", "`exception_info` and no reward",
        "Name the job's folder. `candidate_names` is only there to shorten the names.",
    ),
    "SWE-bench report": Entry(
        "swe_bench", "swe_bench/alpha.made.json", {}, "the name of the file, up to its last part", "the instance id", "one per file", "in `resolved_ids`",
        "error, timeout, empty patch, or not submitted",
        "Reports of the harness, with old or new key names, and leaderboard entries with `per_instance_details`.",
    ),
    "METR runs": Entry(
        "metr.jsonl", "metr.jsonl", {}, "`alias`, else `model`", "`task_id`", "the order of the rows", "`score_binarized`", "a null score",
    ),
    "OpenAI evals log": Entry(
        "openai_evals", "openai_evals/alpha_1.jsonl", {}, "`spec.completion_fns`", "`sample_id`", "one per file", "`data.correct`", "an `error` event",
    ),
    "DeepEval test run": Entry(
        "deepeval", "deepeval/alpha.json", {}, "`identifier`", "`name`", "the order of the rows", "`success`", "a metric's `error`",
    ),
    "LangSmith experiment": Entry(
        "langsmith", "langsmith/alpha.csv", {}, "`experiment_name`, else the file", "`example_id`", "the order of the rows",
        "the one feedback, or the `scorer` named", "`error`", UNCHECKED,
    ),
    "Braintrust experiment": Entry(
        "braintrust.jsonl", "braintrust.jsonl", {"scorer": "match"}, "`experiment_name`", "`dataset_record_id`", "the order of the rows",
        "the one score, or the `scorer` named", "`error`", UNCHECKED,
    ),
    "Langfuse dataset run": Entry(
        "langfuse.jsonl", "langfuse.jsonl", {}, "`dataset_run_name`", "`dataset_item_id`", "the order of the rows",
        "the one score, or the `scorer` named", "`status_message`", UNCHECKED,
    ),
}  # fmt: skip

TABLES = {
    "The canonical table": (
        "tables/long.csv", "tables/long.csv", {},
        "One row per cell. `outcome` is pass or fail (true and false, 1 and 0 do too), or why there is none: absent, error, timeout, cancelled, "
        "ungraded. `group`, `cluster`, `detail`, `grouping_rule`, `grader_version` and `case_set` are optional; any other column holds numbers.",
    ),
    "A spreadsheet with columns of its own": (
        "tables/spreadsheet.csv", "tables/spreadsheet.csv",
        {"columns": "candidate=Model name; instance=Task #; repetition=Run; outcome=Passed?; passes=T; fails=F; blank=ungraded; "
                    "detail=Remarks; measured=Cost $"},
        "Say which column is which. `passes` and `fails` list the words that mean so, `blank` what an empty cell means; a word that is in "
        "neither list is refused. `measured` keeps columns of numbers. Columns that nobody names are left out. A part without a column can be "
        "said: `candidate== mine`, or `repetition== 1` where each instance was run once. Save it as CSV UTF-8 with commas and decimal points; a "
        "byte-order mark and Windows line ends are fine.",
    ),
    "One row per instance, one column per repetition": (
        "tables/wide.csv", "tables/wide.csv", {"columns": "candidate=model; instance=task; wide=run 1, run 2; passes=T; fails=F; blank=absent"},
        "`wide` names the columns of outcomes.",
    ),
    "Scores instead of verdicts": (
        "tables/scores.jsonl", "tables/scores.jsonl", {"columns": "candidate=model; instance=task; repetition=seed; outcome=reward; passes=>= 0.5"},
        "`passes` may be a condition on an exact number: `==`, `>=`, `<=`, `>` or `<`. The numbers stay, as the column `score`. JSON Lines, a "
        "JSON list of rows, TSV and Parquet are declared the same way.",
    ),
    "One table per candidate": (
        "tables/per_candidate", "tables/per_candidate/alpha.csv",
        {"columns": "instance=task; repetition=order; outcome=reward", "candidate_names": "alpha.csv=alpha; beta.csv=beta"},
        "`candidate_names` says whose file each is. `repetition=order` numbers the rows of each candidate and instance in the order of the file; "
        "for one file per run, use `-p repetition file` instead.",
    ),
}  # fmt: skip

HEAD = """# What the kit reads

This page is made by `docs/make_formats.py`. The examples are small made files under `fixtures/sources/`: two candidates, alpha and beta,
three instances, two repetitions, and nearly always a cell without a verdict. The sentence below a command is what that command says.

Name a file, a folder, or a pattern in quotes (`'logs/*.eval'`); gzip and Zstandard are unpacked. The kit tells the tool from the
content, joins all files to one campaign, and refuses what it would have to guess, with what to do. So the shortest way in is to try:

```
python -m evalkit report release -p campaign PATH -o report
```

Without an incumbent it lists the candidates that it found. What follows a `-p` here is a parameter of the same name in the release
notebook and in Python: `read_campaign("logs/*.eval", scorer="match")`. [09_real_campaigns](../notebooks/09_real_campaigns.ipynb) takes
most of them too.

| parameter | when you need it |
|---|---|
| `incumbent` | always: the candidate in use now, or `none` with a rule that has a floor |
| `scorer`, `passes` | a file has several scorers; its numbers are not 0 and 1 (`-p passes '>= 0.5'`) |
| `columns` | a [table](#tables) whose columns have names of their own |
| `candidate_names` | the file does not say who ran, or says it at length: `'a.json=A; b.json=B'`, by file, folder or own name |
| `group`, `task` | the metadata key that groups instances; the task to keep where files hold several |
| `repetition` | `order`: number the rows; `file`: each file is one run |
| `accept` | a difference or a gap taken as it is, by name: task, task_version, dataset, scorer, grader, partial, invalidated |
| `keep` | `last`: the last log of a run that was retried |
| `inventory` | a CSV of the planned instances (`instance`, and optionally `group`, `cluster`), so that one that nobody ran shows |

A missing cell keeps its reason. To count one as a fail, copy `fixtures/fail_closed_rule.json`, add the line `"count_as_fail": ["error"],`
and pass it with `-p rule my_rule.json`; the report then says so.
"""

FRAMES = """## Dataframes

In Python, pandas, Polars, PyArrow, DuckDB, PySpark and Dask frames are read where they are, with the same declaration:

```python
from evalkit.sources.frame import campaign_of

data = campaign_of(frame, columns="candidate=model; instance=task; repetition=seed; outcome=reward; passes=>= 0.5")
```
"""

TALLY_COMMAND = (
    f"python -m evalkit tabulate --tally {MADE}/tables/requests.csv "
    "--columns 'period=month; group=kind; outcome=verdict; request=id; passes=ok; fails=not ok' -o counts.csv"
)


def command(given: dict[str, str], kind: str = "release", output: str = "report") -> str:
    """The command line of a report."""
    return " ".join(["python -m evalkit report", kind, *(f"-p {name} {shlex.quote(value)}" for name, value in given.items()), "-o", output])


def shortened(value: Any) -> Any:
    """A document with one entry of every list."""
    if isinstance(value, dict):
        return {key: shortened(inner) for key, inner in value.items()}
    return [shortened(value[0]), *(["..."] if len(value) > 1 else [])] if isinstance(value, list) and value else value


def folded(value: Any, indent: str = "", width: int = 110) -> str:
    """JSON in which whatever fits on a line stands on one."""
    flat = json.dumps(value, ensure_ascii=False).replace('"..."', "...")
    if len(indent) + len(flat) <= width or not isinstance(value, dict | list) or not value:
        return flat
    deeper = indent + "  "
    if isinstance(value, dict):
        inner = [f"{deeper}{json.dumps(key)}: {folded(one, deeper, width - len(key) - 4)}" for key, one in value.items()]
    else:
        inner = [deeper + ("..." if one == "..." else folded(one, deeper, width)) for one in value]
    left, right = "{}" if isinstance(value, dict) else "[]"
    return f"{left}\n" + ",\n".join(inner) + f"\n{indent}{right}"


def example(shown: str) -> str:
    """A fixture, shortened, in a code block under its name."""
    text = (ROOT / MADE / shown).read_text("utf-8-sig")
    lines = text.splitlines()
    if shown.endswith(".json"):
        return f"`{MADE}/{shown}`, shortened:\n\n```json\n{folded(shortened(json.loads(text)))}\n```\n"
    few = [*lines[:3], "..."] if shown.endswith(".jsonl") or len(lines) > 13 else lines
    return f"`{MADE}/{shown}`{', its first lines' if few is not lines else ''}:\n\n```\n" + "\n".join(few) + "\n```\n"


def said(given: dict[str, str]) -> str:
    """What the release report says of it."""
    found = report.release(**given)
    gaps = [f"{plain(name)} has {cover}" for name in found.campaign.candidates if (cover := found.campaign.coverage(name)).missing]
    return f"> {found.campaign.notes[0]}.\n> {show.headline(found.decision)}{'; ' if gaps else ''}{'; '.join(gaps)}.\n"


def tool(name: str) -> str:
    """The section of one tool."""
    entry, known = TOOLS[name], next(one for one in FORMATS if one.name == name)
    given = {"campaign": f"{MADE}/{entry.paths}", "incumbent": "alpha", **entry.given}
    header = ["candidate", "instance", "repetition", "passes", "missing"]
    rows = [header, ["---"] * 5, [getattr(entry, key) for key in header]]
    parts = [
        f"## {name}\n",
        *([f"{entry.note}\n"] if entry.note else []),
        "".join(f"| {' | '.join(row)} |\n" for row in rows),
        example(entry.shown),
    ]
    choices = ", ".join(f"`{choice}`" for choice in known.choices)
    parts += [
        f"```\n{command(given)}\n```\n",
        said(given),
        f"Recognised by {known.looks_for}." + (f" Choices: {choices}." if choices else "") + "\n",
    ]
    return "\n".join(parts)


def table(name: str) -> str:
    """The section of one kind of table."""
    paths, shown, declared, note = TABLES[name]
    given = {"campaign": f"{MADE}/{paths}", "incumbent": "alpha", **declared}
    return "\n".join([f"### {name}\n", f"{note}\n", example(shown), f"```\n{command(given)}\n```\n", said(given)])


def tallies() -> str:
    """The section of the mix report's input."""
    given = {"tallies": f"{MADE}/tables/counts.csv", "baseline": "march", "candidate": "april", "reference": "march_mix.json"}
    reference = f"python -m evalkit reference --from {MADE}/tables/counts.csv --period march --id march_mix --purpose 'Traffic of March' -o march_mix.json"
    return "\n".join(
        [
            "## Tallies\n",
            "The mix report reads counts per period and group. Declare the reference first, from a period that you trust.\n",
            example("tables/counts.csv"),
            f"```\n{reference}\n{command(given, 'mix', 'mix')}\n```\n",
            "From one row per request, make the counts first. An empty verdict is a request that nobody assessed yet.\n",
            example("tables/requests.csv"),
            f"```\n{TALLY_COMMAND}\n```\n",
        ]
    )


def page() -> str:
    """The whole page."""
    anchors = [(name, name.lower().replace(" ", "-")) for name in (*TOOLS, "Tables", "Dataframes", "Tallies")]
    index = " · ".join(f"[{name}](#{anchor})" for name, anchor in anchors)
    canonical = f"python -m evalkit tabulate {MADE}/inspect --scorer match -o campaign.csv"
    with contextlib.chdir(ROOT):  # so that the paths are those of the commands
        parts = [HEAD, index + "\n", *map(tool, TOOLS), "## Tables\n", *map(table, TABLES)]
    parts += [
        "### Any input as the canonical table\n",
        "One row per planned cell, with outcome and reason. `tabulate --help` lists the options.\n",
    ]
    parts += [f"```\n{canonical}\n```\n", FRAMES, tallies()]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    (HERE / "formats.md").write_text(page(), encoding="utf-8")
    print(HERE / "formats.md")

"""lm-evaluation-harness samples: ``samples_TASK_TIME.jsonl``, one row per document and filter, beside ``results_TIME.json``.

The samples file does not say which model answered; the results file of the same time beside it does, or the caller. The
metric of a row belongs to the filtered response, so ``repeats`` inside ``resps`` are no repetitions: one per file.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..errors import InputError, quote
from ._json import Lines, Twice, load, name, number, part, refuse, take, text
from ._rows import OF_THE_FILE, Facts, Format, Options, Row, Rows, choose, disagreement, has, mean, verdict

_SAMPLES = re.compile(r"samples_(.+)_([0-9T:.-]+)\.jsonl")


def companion(value: Any) -> bool:
    """The results file, which the reader of the samples opens itself."""
    return has(value, "results", "configs", "versions")


def rows(file: Path, value: Any, options: Options) -> Rows:
    """The rows of one filter and metric; where there are several, ``scorer`` names one, as ``exact_match,first``."""
    entries = list(zip(value.numbers, value, strict=True)) if isinstance(value, Lines) else [(1, value)]
    task, results = _results(file)
    if options.task not in ("", task):
        return Rows(Facts(task=task), ())
    pairs = dict.fromkeys(f"{metric},{text(row, 'filter') or 'none'}" for place, row in entries for metric in _metrics(row, place))
    try:
        scorer = choose(list(pairs), options.scorer, "metric and filter pair")
    except InputError as error:
        error.todo += f"; where a folder holds several tasks, choose one too: task={quote(task)}" if task else ""
        raise
    metric, _, wanted = scorer.rpartition(",")
    candidate = _candidate(results) or file.parent.name
    found = []
    for place, row in entries:
        if (text(row, "filter") or "none") == wanted:
            score = _value(row, metric, place)
            code = verdict(score, options.passes, metric, place)
            found.append(Row(candidate, name(row, "doc_id", place), OF_THE_FILE, code, place, "" if score is not None else f"no {metric}",
                             _group(row, task, options.group, place), text(row, "doc_hash"), {"score": score}))  # fmt: skip
    shots = text(results, "n-shot", task)
    facts = Facts(
        version=text(results, "lm_eval_version"),
        task=task,
        task_version=", ".join(filter(None, (text(results, "versions", task), shots and f"{shots} examples"))),
        dataset=text(results, "task_hashes", task),
        scorer=scorer,
        created=text(results, "date"),
        notes=tuple(_notes(results, task, scorer, found)),
    )
    return Rows(facts, found)


def _metrics(row: Any, place: int) -> list[str]:
    metrics = take(row, "metrics", place)
    if not isinstance(metrics, list) or not all(isinstance(metric, str) for metric in metrics):
        refuse(metrics, "metrics", "a list of names", place)
    return metrics


def _value(row: dict[str, Any], metric: str, place: int) -> Fraction | None:
    value = take(row, metric, place)
    if isinstance(value, bool):
        return Fraction(value)
    return (
        number(value, metric, place)
        if value is None or isinstance(value, int | Decimal | Twice)
        else refuse(value, metric, "one number", place)
    )


def _group(row: dict[str, Any], task: str, key: str, place: int) -> str | None:
    return name(take(row, "doc", place), key, place) if key else task or None


def _results(file: Path) -> tuple[str, dict[str, Any]]:
    """The task from the file's name, and the results of the same time beside it, where they are."""
    match = _SAMPLES.fullmatch(file.name.removesuffix(".gz"))
    beside = file.with_name(f"results_{match[2]}.json") if match else file
    if match is None or not beside.is_file():
        return match[1] if match else "", {}
    results = load(beside.read_bytes())
    if not companion(results) or match[1] not in part(results, "configs", dict):
        raise InputError(f"results beside it that do not hold task {quote(match[1])}", f"the results of that run in {beside.name}",
                         "put the files of one run in one folder")  # fmt: skip
    return match[1], results


def _candidate(results: dict[str, Any]) -> str:
    arguments = text(results, "config", "model_args")
    model = text(results, "config", "model")
    return text(results, "model_name") or (f"{model} ({arguments})" if model and arguments else model)


def _notes(results: dict[str, Any], task: str, scorer: str, found: list[Row]) -> list[str]:
    if not results:
        return ["no results file of the same time beside it: the candidate is named after the folder, and no total is checked"]
    notes = []
    repeats = part(part(results, "configs", dict), task, dict).get("repeats")
    if type(repeats) is int and repeats > 1:
        notes.append(f"{repeats} responses per document were reduced to one by the filter; their own outcomes are not in the file")
    counts = part(part(results, "n-samples", dict), task, dict)
    if counts:
        original, effective = counts.get("original"), counts.get("effective")
        if original != len(found):
            notes.append(f"the task has {original} documents, the run took {effective}, and the file holds {len(found)}")
    published = part(part(results, "results", dict), task, dict)
    if isinstance(published.get(scorer), int | Decimal):
        scores = [score for row in found if (score := row.numbers["score"]) is not None]
        notes += disagreement(scorer, number(published[scorer], scorer), mean(scores))
    return notes


FORMAT = Format(
    "lm-evaluation-harness samples",
    "lines with doc_id, resps, filtered_resps and metrics",
    lambda value: has(value[0] if isinstance(value, Lines) else value, "doc_id", "resps", "filtered_resps"),
    rows,
    ("scorer", "passes", "group", "task"),
)

"""What the rows are measured on, made from seeds; never timed with a contender."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

REPETITIONS = 5
_CHUNK = 1_000_000
_WORDS = "the agent reads the page, calls a tool with some arguments, and looks at what comes back before it goes on. "


def chances(candidates: int, instances: int, seed: int = 0) -> np.ndarray:
    """Each candidate's chance to pass each instance."""
    rng = np.random.default_rng(seed)
    return 1 / (1 + np.exp(-(np.linspace(0, 1.5, candidates)[:, None] + rng.normal(0, 1.5, instances))))


def passes(candidates: int, instances: int, seed: int = 0) -> np.ndarray:
    """Passed or not, shape (repetitions, candidates, instances)."""
    rng = np.random.default_rng(seed + 1)
    return rng.random((REPETITIONS, candidates, instances)) < chances(candidates, instances, seed)


def names(word: str, n: int) -> list[str]:
    """``word-1`` and so on."""
    return [f"{word}-{i}" for i in range(1, n + 1)]


def answer(passed: np.ndarray, candidates: list[str]) -> dict[str, Any]:
    """What every reader of the data must find: instances passed in every repetition, and cells passed, by candidate."""
    return {name: [int(passed[:, c].all(axis=0).sum()), int(passed[:, c].sum())] for c, name in enumerate(candidates)}


def table(folder: Path, suffixes: tuple[str, ...], candidates: int, instances: int) -> dict[str, Any]:
    """One row per cell, shuffled, as ``cells.parquet`` and ``cells.csv``; returns what readers must find."""
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = passes(candidates, instances)
    n = found.size
    step = next(k for k in range(int(n * 0.618), n) if math.gcd(k, n) == 1)  # k -> k * step mod n visits every cell once
    rng = np.random.default_rng(2)
    who, what = (pa.array(names(*pair)) for pair in (("model", candidates), ("task", instances)))
    verdict = pa.array(["fail", "pass"])
    writer, plain = None, (folder / "cells.csv").open("wb") if ".csv" in suffixes else None
    for start in range(0, n, _CHUNK):
        cells = np.arange(start, min(start + _CHUNK, n)) * step % n
        rng.shuffle(cells)
        r, c, i = np.unravel_index(cells, found.shape)
        rows = pa.table(
            {
                "candidate": who.take(pa.array(c)),
                "instance": what.take(pa.array(i)),
                "repetition": pa.array(r.astype(np.int64)),
                "outcome": verdict.take(pa.array(found.ravel()[cells].astype(np.int8))),
            }
        )
        if ".parquet" in suffixes:
            writer = writer or pq.ParquetWriter(folder / "cells.parquet", rows.schema)
            writer.write_table(rows)
        if plain:
            pl.from_arrow(rows).write_csv(plain, include_header=not start)
    for stream in filter(None, (writer, plain)):
        stream.close()
    return answer(found, names("model", candidates))


def promptfoo(path: Path, megabytes: float) -> dict[str, Any]:
    """A promptfoo results file of that size: three providers, four repeats; returns what readers must find."""
    candidates, each = 3, 4
    tests = max(2, int(megabytes * 1e6 / (candidates * each * 5_050)))
    found = passes(candidates, tests)[:each]
    with path.open("w") as stream:
        stream.write(
            '{"evalId": "eval-1", "results": {"version": 3, "timestamp": "2026-01-01T00:00:00.000Z", "prompts": [], "results": [\n'
        )
        for k, (r, i, c) in enumerate(np.ndindex(each, tests, candidates)):
            row = _promptfoo_row(r * tests + i, f"question {i + 1}", f"model-{c + 1}", bool(found[r, c, i]))
            stream.write(",\n" * bool(k) + json.dumps(row, indent=1))
        total = int(found.sum())
        stats = {"successes": total, "failures": found.size - total, "errors": 0}
        stream.write(
            f'], "stats": {json.dumps(stats)}}}, "config": {{}}, "shareableUrl": null, "metadata": {{"promptfooVersion": "0.121.20"}}}}'
        )
    return answer(found, names("model", candidates))


def _promptfoo_row(index: int, question: str, provider: str, passed: bool) -> dict[str, Any]:
    used = {"total": 900, "prompt": 400, "completion": 500, "cached": 0, "numRequests": 1}
    detail = {"reasoning": 0, "acceptedPrediction": 0, "rejectedPrediction": 0}
    checks = [{"type": "contains", "value": word, "metric": word} for word in ("page", "tool", "arguments")]
    return {
        "cost": 0.00125, "gradingResult": {
            "pass": passed, "score": 1 if passed else 0.6666666666666666, "reason": "all checks passed" if passed else "no such text",
            "namedScores": {"page": 1, "tool": 1, "arguments": 0.5}, "tokensUsed": used,
            "componentResults": [{"pass": passed, "score": int(passed), "reason": _WORDS, "assertion": check} for check in checks],
        },
        "id": f"{index}-{provider}", "latencyMs": 1234, "namedScores": {"page": 1, "tool": 1, "arguments": 0.5},
        "prompt": {"raw": question + _WORDS * 4, "label": "{{q}}", "config": {}}, "promptId": "p" * 64, "promptIdx": 0,
        "provider": {"id": provider, "label": provider},
        "response": {"output": _WORDS * 18, "cost": 0.00125, "cached": False, "tokenUsage": used, "metadata": {}},
        "score": 1 if passed else 0.6666666666666666, "success": passed,
        "testCase": {"description": question, "vars": {"q": question}, "metadata": {"group": "easy"}, "assert": checks, "options": {}},
        "testIdx": index, "tokenUsage": {**used, "completionDetails": detail, "assertions": {**used, "completionDetails": detail}},
        "vars": {"q": question}, "metadata": {"group": "easy"}, "failureReason": 0 if passed else 1,
    }  # fmt: skip


def inspect_log(path: Path, samples: int, epochs: int) -> dict[str, Any]:
    """An ``.eval`` log as inspect-ai itself writes it, some 6 KB a sample; returns what readers must find."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput
    from inspect_ai.scorer import Score

    found = passes(1, samples)[:epochs]
    rows = []
    for i, e in np.ndindex(samples, epochs):
        passed, said = bool(found[e, 0, i]), f"{i} {e} {_WORDS}"
        talk = [m for turn in range(8) for m in (ChatMessageUser(content=f"{turn} {said * 2}"), ChatMessageAssistant(content=said * 3))]
        rows.append(
            EvalSample(
                id=f"task-{i + 1}", epoch=e + 1, input=said, target="ok", messages=talk, output=ModelOutput.from_content("m", said),
                scores={"match": Score(value="C" if passed else "I", answer="ok", explanation=said)}, metadata={"group": "easy"},
            )
        )  # fmt: skip
    dataset = EvalDataset(name="made", samples=samples, sample_ids=[f"task-{i + 1}" for i in range(samples)])
    spec = EvalSpec(created="2026-01-01T00:00:00+00:00", task="made", dataset=dataset, model="model-1", config=EvalConfig(epochs=epochs))
    write_eval_log(EvalLog(eval=spec, status="success", samples=rows), str(path), format="eval")
    return answer(found, ["model-1"])

"""The rows of the benchmark, one function each: build what is measured once, run the contenders in turn, hold them to the goals."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np

from evalkit import Campaign, at_least, cell_mean, fail_closed, pass_hat, rank, rank_key
from evalkit.campaign import FAIL, PASS
from evalkit.counterexample import smallest_disagreement
from evalkit.uncertainty import selection_stability, sign_flip

from . import data
from .measure import OURS, ROOT, Answer, Goal, Line, Sample, child, in_turn, lines, memory, seconds, timed

KEY = (fail_closed, cell_mean)


def scratch() -> AbstractContextManager[str]:
    """A folder that goes when the row is done."""
    return tempfile.TemporaryDirectory(prefix="bench-")


def made(candidates: int, instances: int) -> Campaign:
    """A complete campaign in memory."""
    codes = np.where(data.passes(candidates, instances), PASS, FAIL).astype(np.uint8)
    names = (tuple(data.names(word, n)) for word, n in (("model", candidates), ("task", instances), ("run", data.REPETITIONS)))
    return Campaign(*names, codes)


def keys(small: bool) -> list[Line]:
    """Rows 1 and 2: rank keys of all candidates, from the codes and from derived counts."""
    instances = 1_000 if small else 100_000
    campaign = made(20, instances)
    passed = campaign.codes == PASS
    cells = passed[:, 0].size

    def told(found: dict[str, tuple]) -> Answer:
        return {"passed": sum(int(mean * cells) for _, mean in found.values()), "held": {name: held for name, (held, _) in found.items()}}

    def ranked(held: Campaign) -> Answer:
        found = {name: rank_key(held.of(name), KEY) for name in held.candidates}
        rank(found)
        return told(found)

    def by_hand() -> Answer:
        held = np.logical_and.reduce(passed, axis=0)
        counts = {name: int(np.count_nonzero(row)) for name, row in zip(campaign.candidates, held, strict=True)}
        return {"passed": int(np.count_nonzero(passed)), "held": counts}

    counts = campaign.tally_by_code[PASS]
    views = [campaign.of(name) for name in campaign.candidates]

    def of_counts() -> Answer:
        found = {view.candidate: rank_key(view, KEY) for view in views}
        rank(found)
        return told(found)

    work = f"keys (fail-closed, cell mean) of 20 candidates x {instances:,} instances x {data.REPETITIONS}, ranked"
    one = {
        OURS: timed(lambda: ranked(replace(campaign))),  # a copy has none of the derived counts
        "numpy: count_nonzero over the same bytes": timed(lambda: {"passed": int(np.count_nonzero(passed))}),
        "numpy by hand, nothing checked": timed(by_hand),
    }
    two = {
        OURS: timed(of_counts),
        "numpy: one sum over the counts": timed(lambda: {"passed": int(counts.sum())}),
    }
    rounds = 15
    return [
        *seconds(1, f"{work}, from outcome codes", in_turn(one, rounds), {list(one)[1]: Goal("at most 4 times", 4)}),
        *seconds(2, f"{work}, from counts", in_turn(two, rounds), {list(two)[1]: Goal("at most 2 times", 2)}),
    ]


def reducers(small: bool) -> list[Line]:
    """Row 3: Inspect's reducers."""
    from inspect_ai.scorer import Score, mean_score, pass_k
    from inspect_ai.scorer import at_least as at_least_k

    instances = 1_000 if small else 100_000
    view = made(1, instances).of("model-1")
    passed = data.passes(1, instances)[:, 0].T.tolist()
    theirs = [[Score(value=int(cell)) for cell in cells] for cells in passed]
    trio = (("mean", cell_mean, mean_score()), ("at least 3", at_least(3), at_least_k(3)), ("pass^3", pass_hat(3), pass_k(3)))
    out = []
    for name, ours, reduce in trio:

        def of_theirs(reduce: Callable[..., Score] = reduce) -> Answer:
            return {"mean": round(sum(reduce(scores).as_float() for scores in theirs) / instances, 9)}

        def of_ours(name: str = name, ours: Callable = ours) -> Answer:
            return {"mean": round(float(ours(view)) / (instances if name == "at least 3" else 1), 9)}

        found = in_turn({OURS: timed(of_ours), "inspect-ai reducer": timed(of_theirs)}, 3)
        out += seconds(3, f"{name}, {instances:,} x {data.REPETITIONS}", found, {"inspect-ai reducer": Goal("100 times faster", 0.01)})
    return out


def tables(small: bool) -> list[Line]:
    """Row 4: a table in a file to a decision."""
    instances = 1_000 if small else 100_000
    out = []
    with scratch() as folder:
        expected = data.table(Path(folder), (".parquet", ".csv"), 20, instances)
        for suffix in (".parquet", ".csv"):
            path = Path(folder, f"cells{suffix}")
            found = in_turn(
                {
                    OURS: _against(expected, child("evalkit", path)),
                    "Polars by hand, nothing checked": child("polars", path),
                    "pandas by hand": child("pandas", path),
                    "DuckDB by hand": child("duckdb", path),
                },
                3,
            )
            work = f"{20 * instances * data.REPETITIONS:,} shuffled rows of {'Parquet' if suffix == '.parquet' else 'CSV'} to a decision"
            ahead = Goal("ahead", 1)
            goals = {"Polars by hand, nothing checked": Goal("at most 1.5 times", 1.5), "pandas by hand": ahead, "DuckDB by hand": ahead}
            out += seconds(4, work, found, goals)
            out += memory(4, work, found, {"Polars by hand, nothing checked": Goal("at most 1.2 times", 1.2)})
    return out


def _against(expected: Answer, run: Callable[[], Sample]) -> Callable[[], Sample]:
    """A run whose answer must be what the data were made to say."""

    def sample() -> Sample:
        found = run()
        if found.answer != expected:
            raise SystemExit(f"found {dict(found.answer)}, but the data say {dict(expected)}")
        return found

    return sample


def growth(small: bool) -> list[Line]:
    """Row 5: tables of 10^6, 10^7 and 10^8 rows."""
    times, peaks = {}, {}
    for instances in (1_000, 3_000, 10_000) if small else (10_000, 100_000, 1_000_000):
        with scratch() as folder:
            expected = data.table(Path(folder), (".parquet",), 20, instances)
            run = _against(expected, child("evalkit", Path(folder, "cells.parquet")))
            best = in_turn({OURS: run}, 1 if instances == 1_000_000 else 3)[OURS]
            times[20 * instances * data.REPETITIONS], peaks[20 * instances * data.REPETITIONS] = best.seconds, best.peak
    least, most = min(times), max(times)
    work = f"{most:,} shuffled rows of Parquet to a decision"
    by_size = {OURS: times[most], **{f"evalkit, {rows:,} rows": time for rows, time in times.items() if rows != most}}
    linear = Goal(f"at most {most // least} times (linear)", most / least)
    by_peak = {OURS: peaks[most], **{f"evalkit, {rows:,} rows": peak for rows, peak in peaks.items() if rows != most}}
    return [
        *lines(5, work, by_size, {f"evalkit, {least:,} rows": linear}),
        *lines(5, f"{work}, peak memory", by_peak, {OURS: Goal("under 4 GiB", 0, 4096)}, "MB"),
    ]


def engines(small: bool) -> list[Line]:
    """Row 6: the same in PySpark and Dask."""
    instances, out = 1_000 if small else 100_000, []
    with scratch() as folder:
        data.table(Path(folder), (".parquet",), 20, instances)
        digests = set()
        for name in ("spark", "dask"):
            command = [sys.executable, "-m", "tests.bench.child", "engine", str(Path(folder, "cells.parquet")), name, "3"]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            found = {who: Sample(**sample) for who, sample in json.loads(done.stdout.splitlines()[-1]).items()}
            digests.add(found[OURS].answer["digest"])
            work = f"{20 * instances * data.REPETITIONS:,} rows in {name.title()}, local mode, to a decision"
            out += seconds(6, work, found, {"bare group-by": Goal("at most 1.1 times", 1.1)})
        if len(digests) != 1:
            raise SystemExit("the engines give different campaigns")
    return out


def stability(small: bool) -> list[Line]:
    """Row 7: selection stability, by fail-closed alone and with the cell mean as tie-breaker."""
    from scipy.stats import bootstrap

    instances, resamples, out = 500 if small else 10_000, 2_000, []
    campaign = made(8, instances)
    views = [campaign.of(name) for name in campaign.candidates]
    held = np.stack([(view.passed == data.REPETITIONS).astype(np.int64) for view in views])
    passed = np.stack([view.passed for view in views])
    both = held * (passed[0].size * data.REPETITIONS + 1) + passed  # left to right, in one number

    def alike(first: Answer, other: Answer) -> bool:
        """The same shares as far as the luck of the draws goes: five standard errors of a difference."""
        pairs = [(first[name], other[name]) for name in campaign.candidates]
        return all(abs(a - b) <= 5 * sqrt(2 * max(a * (1 - a), 1 / resamples) / resamples) for a, b in pairs)

    for key, worth in (((fail_closed,), held), (KEY, both)):

        def ours(key: Sequence = key) -> Answer:
            found = selection_stability(campaign, key, resamples=resamples)
            return {name: float(share) for name, share in found.wins.items()}

        def scipys(worth: np.ndarray = worth) -> Answer:
            def sums(*samples: np.ndarray, axis: int) -> np.ndarray:
                return np.stack([sample.sum(axis=axis) for sample in samples]).astype(float)  # exact below 2**53

            drawn = bootstrap(tuple(worth), sums, n_resamples=resamples, paired=True, method="percentile", batch=100, rng=1)
            totals = drawn.bootstrap_distribution
            first = totals == totals.max(axis=0)
            alone = first & (first.sum(axis=0) == 1)
            return dict(zip(campaign.candidates, alone.mean(axis=1).tolist(), strict=True))

        found = in_turn({OURS: timed(ours), "scipy.stats.bootstrap, eight paired samples": timed(scipys)}, 3, alike)
        work = (
            f"selection stability by {', '.join(r.__name__ for r in key)}: {instances:,} instances, 8 candidates, {resamples:,} resamples"
        )
        out += seconds(7, work, found, {"scipy.stats.bootstrap, eight paired samples": Goal("20 times faster", 1 / 20)})
    return out


def sign_flips(small: bool) -> list[Line]:
    """Row 8: the paired test of no difference."""
    from scipy.stats import permutation_test

    pairs, flips = 500 if small else 10_000, 9_999
    differences = np.random.default_rng(3).integers(-data.REPETITIONS, data.REPETITIONS + 1, pairs)
    plain = differences.tolist()

    def scipys() -> Answer:
        found = permutation_test((differences,), np.sum, permutation_type="samples", n_resamples=flips, vectorized=True, batch=500, rng=1)
        return {"p": float(found.pvalue)}

    def alike(first: Answer, other: Answer) -> bool:
        return abs(first["p"] - other["p"]) <= 5 * sqrt(2 * max(first["p"] * (1 - first["p"]), 1 / flips) / flips)

    name = f"scipy.stats.permutation_test, {flips:,} draws"
    found = in_turn({OURS: timed(lambda: {"p": float(sign_flip(plain).value)}), name: timed(scipys)}, 3, alike)
    return seconds(8, f"sign-flip test of {pairs:,} pairs ({sign_flip(plain).method})", found, {name: Goal("100 times faster", 0.01)})


def harness_files(small: bool) -> list[Line]:
    """Row 9: an Inspect log and a promptfoo file."""
    out = []
    with scratch() as folder:
        log, results = Path(folder, "log.eval"), Path(folder, "results.json")
        samples, epochs, megabytes = (50, 4, 5) if small else (5_000, 4, 200)
        expected = data.inspect_log(log, samples, epochs)
        found = in_turn(
            {
                OURS: _against(expected, child("evalkit_file", log)),
                "inspect-ai read_eval_log": child("inspect_log", log),
                "inspect-ai read_eval_log_samples": child("inspect_samples", log),
                "zipfile, json.loads and a loop": child("zip_loop", log),
            },
            3,
        )
        work, faster = f"Inspect .eval, {samples:,} samples x {epochs} epochs", Goal("faster", 1)
        out += seconds(9, work, found, {name: faster for name in found if name != OURS})
        packed = log.stat().st_size / 1e6
        out += memory(9, work, found, {OURS: Goal("the packed file and a member over imports", 0, found[OURS].imports + packed + 64)})
        expected = data.promptfoo(results, megabytes)
        found = in_turn({OURS: _against(expected, child("evalkit_file", results)), "json.load and a loop": child("json_loop", results)}, 3)
        work = f"promptfoo JSON, {results.stat().st_size / 1e6:.0f} MB"
        out += seconds(9, work, found, {"json.load and a loop": faster})
        out += memory(9, work, found, {})
    return out


def _command(*command: str, folder: str = "", exit_status: int = 0) -> Callable[[], Answer]:
    def run() -> Answer:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=folder or ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
        return {"status": done.returncode} if done.returncode == exit_status else {"status": done.returncode, "failed": " ".join(command)}

    return run


def imports(small: bool) -> list[Line]:
    """Row 10: what the module adds to the import of numpy."""
    python = {name: timed(_command(sys.executable, "-c", f"import {name}")) for name in (OURS, "numpy")}
    found = in_turn(python, 3 if small else 15)
    return seconds(10, "import, in a new process", found, {"numpy": Goal("at most 20 ms more", 1, 0.020)})


def bundled_report(small: bool) -> list[Line]:
    """Row 11: the release report on the bundled campaign, against papermill and nbconvert on an empty notebook."""
    empty = {"cells": [{"cell_type": "code", "metadata": {}, "source": "", "outputs": [], "execution_count": None, "id": "one"}]}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    execute = "import papermill; papermill.execute_notebook('empty.ipynb', 'out.ipynb', progress_bar=False)"
    export = "from nbconvert import HTMLExporter; open('out.html', 'w').write(HTMLExporter().from_filename('out.ipynb')[0])"
    with scratch() as folder:
        Path(folder, "empty.ipynb").write_text(json.dumps({**empty, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
        report = (sys.executable, "-m", "evalkit", "report", "release", "-o", "report")
        convert = (sys.executable, "-m", "nbconvert", "--to", "html", "--log-level=ERROR", "out.ipynb")
        mill = _command(
            sys.executable, "-m", "papermill", "--no-progress-bar", "--log-level", "ERROR", "empty.ipynb", "out.ipynb", folder=folder
        )
        contenders = {
            OURS: timed(_command(*report, folder=folder)),
            "empty notebook: papermill and nbconvert in one process": timed(
                _command(sys.executable, "-c", f"{execute}\n{export}", folder=folder)
            ),
            "empty notebook: the two commands": timed(lambda: {**mill(), **_command(*convert, folder=folder)()}),
        }
        found = in_turn(contenders, 1 if small else 7)
        assert "PROMOTE" in Path(folder, "report", "report.html").read_text("utf-8")
    return seconds(
        11, "report release on the bundled campaign, command to page", found, {list(contenders)[1]: Goal("under 1.5 times", 1.5)}
    )


def large_report(small: bool) -> list[Line]:
    """Row 12: the release report on 13 candidates x 10^4 instances x 5."""
    instances = 100 if small else 10_000
    with scratch() as folder:
        data.table(Path(folder), (".csv",), 13, instances)
        options = ("-p", "campaign", "cells.csv", "-p", "incumbent", "model-1", "-o", "report")
        run = timed(_command(sys.executable, "-m", "evalkit", "report", "release", *options, folder=folder))
        found = in_turn({OURS: run}, 1 if small else 3)
        page = Path(folder, "report", "report.html").stat().st_size / 1e6
    work = f"report release, 13 candidates x {instances:,} instances x {data.REPETITIONS}"
    return [
        *seconds(12, work, found, {OURS: Goal("under 10 s", 0, 10)}),
        *lines(12, f"{work}, page", {OURS: page}, {OURS: Goal("under 2 MB", 0, 2)}, "MB"),
    ]


def all_tests(small: bool) -> list[Line]:
    """Row 13: the tests, once set up."""
    run = timed(_command("make", "test", folder=str(ROOT)))
    return [] if small else seconds(13, "make test", in_turn({OURS: run}, 1), {OURS: Goal("under 5 minutes", 0, 300)})


def counterexample(small: bool) -> list[Line]:
    """Row 14: the smallest table on which the two published keys disagree, with the proof."""

    def ours() -> Answer:
        found = smallest_disagreement([fail_closed], [cell_mean])
        return {"shape": found.campaign.codes.shape, "ruled out": found.ruled_out}

    def by_hand() -> Answer:
        """Every pair of tables, in order of size, in plain Python."""
        ruled_out = 0
        for cells in itertools.count(1):
            for n in (n for n in range(1, cells + 1) if cells % n == 0):
                r = cells // n
                tables = [(rows.count(r), sum(rows)) for rows in itertools.combinations_with_replacement(range(r, -1, -1), n)]
                pairs = list(itertools.combinations(tables, 2))
                if any((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in pairs):
                    return {"shape": (r, 2, n), "ruled out": ruled_out}
                ruled_out += len(pairs)
        raise AssertionError

    found = in_turn({OURS: timed(ours), "plain Python, these two keys only": timed(by_hand)}, 7)
    return seconds(14, "smallest counterexample for the two published keys, with proof", found, {OURS: Goal("under 1 s", 0, 1)})


ROWS = {
    (1, 2): keys, (3,): reducers, (4,): tables, (5,): growth, (6,): engines, (7,): stability, (8,): sign_flips, (9,): harness_files,
    (10,): imports, (11,): bundled_report, (12,): large_report, (13,): all_tests, (14,): counterexample,
}  # fmt: skip
LONG = (5, 6, 13)

"""Every format: the small made files, the real files with their figures, and the ways in which files are broken."""

import gzip
import json
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import zstandard

from evalkit import (
    Campaign,
    EvalkitError,
    InputError,
    ReleaseRule,
    at_least,
    cell_mean,
    decide,
    fail_closed,
    mean_score,
    pass_at,
    pass_hat,
    read_campaign,
)
from evalkit import sources as dispatcher
from evalkit.sources import files_of, inspect_ai, presets, table
from evalkit.tabulate import campaign_csv, tabulate_tally

ROOT = Path(__file__).resolve().parents[1]
MADE = ROOT / "fixtures" / "sources"
REAL = ROOT.parent / "shared" / "real"
real = pytest.mark.skipif(not REAL.is_dir(), reason="the real result files (../shared/real) are not here")

# What every made campaign of two candidates, three instances and two repetitions says, as passed cells and missing ones.
# The words for what is missing are the tool's own: promptfoo and tau-bench know no timeout, tau2-bench drops what broke.
CAMPAIGNS = {
    "Inspect log": ("inspect", {"scorer": "match"}, "error", "timeout"),
    "promptfoo results": ("promptfoo/results.json", {}, "error", "error"),
    "promptfoo lines": ("promptfoo/results.jsonl", {}, "error", "error"),
    "tau-bench results": ("tau_bench", {}, "error", "error"),
    "tau2-bench results": ("tau2_bench", {}, "absent", "timeout"),
    "terminal-bench results": ("terminal_bench", {}, "error", "timeout"),
    "harbor trials": ("harbor", {"candidate_names": "made-agent with alpha=alpha; made-agent with beta=beta"}, "error", "timeout"),
    "OpenAI evals log": ("openai_evals", {}, "error", "timeout"),
    "DeepEval test run": ("deepeval", {}, "error", "timeout"),
    "LangSmith experiment": ("langsmith", {}, "error", "timeout"),
    "Braintrust experiment": ("braintrust.jsonl", {"scorer": "match"}, "error", "timeout"),
    "Langfuse dataset run": ("langfuse.jsonl", {}, "error", "timeout"),
}


def words(campaign: Campaign, candidate: str) -> list[list[str]]:
    return [[campaign.outcome(candidate, i, r) for r in campaign.repetitions] for i in campaign.instances]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_each_format_tells_the_same_campaign(name: str) -> None:
    path, options, broke, late = CAMPAIGNS[name]
    campaign = read_campaign(MADE / path, **options)
    assert campaign.candidates == ("alpha", "beta")
    assert words(campaign, "alpha") == [["pass", "pass"], ["pass", "fail"], ["fail", broke]]
    assert words(campaign, "beta") == [["pass", "fail"], ["pass", "pass"], ["pass", late]]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_rows_read_are_cells_and_the_format_is_said(name: str) -> None:
    path, options, broke, _ = CAMPAIGNS[name]
    campaign = read_campaign(MADE / path, **options)
    assert re.search(rf"{campaign.rows} rows read = {campaign.rows} cells", campaign.notes[0])
    assert campaign.rows == campaign.codes.size - (broke == "absent")
    assert campaign.notes[0].startswith(name.replace("lines", "results"))


def test_every_preset_has_a_made_file() -> None:
    assert {*presets.PRESETS} <= {*CAMPAIGNS, "METR runs"}


def test_metr_runs_keep_their_verdict_whatever_fatal_error_says() -> None:
    campaign = read_campaign(MADE / "metr.jsonl")
    assert words(campaign, "alpha") == [["pass", "pass"], ["pass", "fail"], ["fail", "fail"]]
    assert campaign.groups == ("easy", "easy", "hard")


def test_lm_eval_reads_one_filter_and_never_a_mean_over_two() -> None:
    with pytest.raises(InputError, match=r"2 metric and filter pairs, exact_match,first, exact_match,second.*scorer='exact_match,first'"):
        read_campaign(MADE / "lm_eval")
    campaign = read_campaign(MADE / "lm_eval", scorer="exact_match,first", group="band")
    assert [cell_mean(campaign.of(c)) for c in campaign.candidates] == [Fraction(2, 3), 1]
    assert campaign.groups == ("easy", "easy", "hard")
    assert any("2 responses per document were reduced to one" in note for note in campaign.notes)


def test_swe_bench_keeps_what_was_never_submitted_in_the_denominator() -> None:
    campaign = read_campaign(MADE / "swe_bench")
    assert words(campaign, "alpha") == [["pass"], ["fail"], ["error"], ["ungraded"], ["absent"]]
    assert words(campaign, "beta") == [["pass"], ["pass"], ["fail"], ["timeout"], ["ungraded"]]
    assert any("4 of 5 instances submitted: 1 resolved is 1 of 5, not of 4" in note for note in campaign.notes)


def test_a_published_figure_that_its_rows_do_not_give_is_noted(tmp_path: Path) -> None:
    campaign = read_campaign(MADE / "swe_bench_leaderboard.json")
    assert "'beta' publishes 52.80; its rows give 2 of 5 = 40.00" in campaign.notes
    assert str(campaign.coverage("alpha")) == "4 of 5 cells (1 absent)"  # 75.0 is 3 of the 4 that were run


def test_an_instance_that_nobody_ran_shows_with_an_inventory(tmp_path: Path) -> None:
    cases = tmp_path / "cases.csv"
    cases.write_text("instance\n" + "".join(f"{i}\n" for i in ("i1", "i2", "i3", "i4")))
    campaign = read_campaign(MADE / "inspect", scorer="match", inventory=cases)
    assert str(campaign.coverage("beta")) == "5 of 8 cells (2 absent, 1 timeout)"


def test_promptfoo_rows_from_the_cache_are_named() -> None:
    notes = read_campaign(MADE / "promptfoo/results.json").notes
    assert "2 rows from the cache, which repeats one answer: beta i2 (repetition 2), alpha i2 (repetition 2)" in notes


def test_the_inspect_notes_say_what_the_logs_own_figure_leaves_out() -> None:
    notes = read_campaign(MADE / "inspect", scorer="match").notes
    assert "the log's own accuracy 0.5000 leaves out 1 of 6 cells, which have no score (inspect/alpha.eval)" in notes


def test_a_verdict_outranks_a_status() -> None:
    """harbor, terminal-bench: a trial of beta timed out and passed."""
    for path in ("harbor", "terminal_bench"):
        campaign = read_campaign(MADE / path)
        beta = campaign.candidates[1]
        assert campaign.outcome(beta, "i2", "1") == "pass"
        assert "imeout" in campaign.details[beta, "i2", "1"] or "late" in campaign.details[beta, "i2", "1"]


def test_repetitions_without_a_name_count_the_files_of_a_candidate() -> None:
    campaign = read_campaign([MADE / "terminal_bench/alpha/run-2/results.json", MADE / "terminal_bench/alpha/run-1/results.json"])
    assert campaign.repetitions == ("1", "2")
    assert words(campaign, "alpha") == [["pass", "pass"], ["pass", "fail"], ["fail", "error"]]


def test_a_glob_a_list_and_a_folder_name_the_same_files() -> None:
    by_glob = read_campaign(str(MADE / "tau_bench" / "*.json"))
    by_list = read_campaign([MADE / "tau_bench/beta.json", MADE / "tau_bench/alpha.json", MADE / "tau_bench/alpha.json"])
    assert by_glob.digest == by_list.digest == read_campaign(MADE / "tau_bench").digest
    assert [file.name for file in files_of(MADE / "tau_bench")] == ["alpha.json", "beta.json"]


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: zstandard.ZstdCompressor().compress(data)])
def test_packed_files_read_the_same(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "alpha.json.gz").write_bytes(pack((MADE / "tau_bench/alpha.json").read_bytes()))
    assert read_campaign(tmp_path).digest == read_campaign(MADE / "tau_bench/alpha.json").digest


def test_an_archive_name_never_becomes_a_path(tmp_path: Path) -> None:
    target = tmp_path / "in" / "log.eval"
    target.parent.mkdir()
    with zipfile.ZipFile(MADE / "inspect/alpha.eval") as old, zipfile.ZipFile(target, "w") as new:
        members = inspect_ai._Members((MADE / "inspect/alpha.eval").read_bytes())
        for n, member in enumerate(old.namelist()):
            new.writestr(f"samples/../../../evil{n}.json" if "i1_" in member else member, json.dumps(members.load(member), default=float))
    assert words(read_campaign(target, scorer="match"), "alpha")[0] == ["pass", "pass"]
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "log.eval"]


def test_reading_inspect_needs_no_inspect() -> None:
    text = "".join(path.read_text() for path in (ROOT / "evalkit/sources").glob("*.py"))
    assert not re.search(r"^\s*(import|from) (inspect_ai|lm_eval|promptfoo|swebench|tau_bench|deepeval|evals)\b", text, re.MULTILINE)


# The files that must agree, and what is accepted by name


def edited(path: Path, change: Callable[[Any], Any]) -> None:
    if path.suffix == ".jsonl":
        values = change([json.loads(line) for line in path.read_text().splitlines()])
        path.write_text("".join(json.dumps(value) + "\n" for value in values))
    else:
        path.write_text(json.dumps(change(json.loads(path.read_text()))))


def put(*keys: str | int, value: Any) -> Callable[[Any], Any]:
    """A change: the value at the end of a path of keys; ``KeyError`` as a value removes the key."""

    def change(whole: Any) -> Any:
        inner = whole
        for key in keys[:-1]:
            inner = inner[key]
        if value is KeyError:
            del inner[keys[-1]]
        else:
            inner[keys[-1]] = value
        return whole

    return change


def twin(folder: Path, change: Callable[[Any], Any]) -> Path:
    """Inspect's beta log, and a changed copy of it under another model name."""
    folder.mkdir(exist_ok=True)
    shutil.copy(MADE / "inspect/beta.json", folder / "beta.json")
    shutil.copy(MADE / "inspect/beta.json", folder / "gamma.json")
    edited(folder / "gamma.json", put("eval", "model", value="gamma"))
    edited(folder / "gamma.json", put("eval", "task_id", value="made-gamma"))
    edited(folder / "gamma.json", change)
    return folder


UNLIKE = {
    "task": put("eval", "task", value="other"),
    "task_version": put("eval", "task_version", value=1),
    "dataset": put("eval", "dataset", "name", value="other"),
    "grader": put("eval", "scorers", 0, "options", value={"model": "another judge"}),
}


@pytest.mark.parametrize("fact", UNLIKE)
def test_files_that_differ_are_refused_unless_the_difference_is_accepted_by_name(fact: str, tmp_path: Path) -> None:
    if fact == "grader":
        folder = twin(tmp_path, UNLIKE[fact])
        edited(folder / "beta.json", put("eval", "scorers", 0, "options", value={"model": "a judge"}))
    else:
        folder = twin(tmp_path, UNLIKE[fact])
    with pytest.raises(InputError, match=rf"found {fact} .*beta.json.*gamma.json.*accept='{fact}'"):
        read_campaign(folder, scorer="match")
    campaign = read_campaign(folder, scorer="match", accept=fact)
    assert campaign.candidates == ("beta", "gamma")
    assert any(note.startswith(f"accepted a difference: {fact} ") for note in campaign.notes)


def test_one_id_of_two_tasks_is_refused_unless_accepted(tmp_path: Path) -> None:
    """tau-bench files do not say their domain, and the tasks of each are numbered from 0."""
    for name in ("alpha", "beta"):
        shutil.copy(MADE / f"tau_bench/{name}.json", tmp_path)
        edited(
            tmp_path / f"{name}.json",
            lambda trials, name=name: [{**t, "info": {"task": {"instruction": f"task of {name}"}}} for t in trials],
        )
    with pytest.raises(InputError, match=r"3 instances of two contents \(0, 1, 2\), in .*alpha.json and in .*beta.json.*accept='dataset'"):
        read_campaign(tmp_path)
    assert any("two contents" in note for note in read_campaign(tmp_path, accept="dataset").notes)


def test_one_task_of_several_is_chosen_by_name(tmp_path: Path) -> None:
    folder = twin(tmp_path, UNLIKE["task"])
    campaign = read_campaign(folder, scorer="match", task="made")
    assert campaign.candidates == ("beta",)
    assert "files of other tasks left out: other" in campaign.notes
    with pytest.raises(InputError, match=r"no task 'third'; expected one of made, other"):
        read_campaign(folder, scorer="match", task="third")


def test_two_files_that_claim_the_same_cells_are_refused_with_the_ways_out(tmp_path: Path) -> None:
    folder = twin(tmp_path, put("eval", "model", value="beta"))
    with pytest.raises(InputError, match=r"cell \('beta', 'i1', repetition '1'\) in .*beta.json and in .*gamma.json") as refusal:
        read_campaign(folder, scorer="match")
    assert "candidate_names" in refusal.value.todo
    assert "repetition='file'" in refusal.value.todo
    assert read_campaign(folder, scorer="match", candidate_names={"gamma.json": "gamma"}).candidates == ("beta", "gamma")
    assert read_campaign(folder, scorer="match", repetition="file").repetitions == ("1.1", "1.2", "2.1", "2.2")


def test_a_retry_supersedes_only_by_an_explicit_choice(tmp_path: Path) -> None:
    folder = twin(tmp_path, put("eval", "task_id", value="made-beta"))
    edited(folder / "gamma.json", put("eval", "model", value="beta"))
    edited(folder / "gamma.json", put("eval", "created", value="2026-01-06T10:00:00+00:00"))
    edited(folder / "gamma.json", put("samples", 5, "scores", value={"match": {"value": "C"}}))
    with pytest.raises(InputError, match=r"2 logs of the same run 'made-beta'.*keep='last'"):
        read_campaign(folder, scorer="match")
    campaign = read_campaign(folder, scorer="match", keep="last")
    assert campaign.coverage("beta").complete
    assert campaign.notes[0].endswith("2 files, 12 rows read = 6 cells + 6 superseded")
    assert any("beta.json: superseded by" in note and "6 rows not counted" in note for note in campaign.notes)


def test_a_run_that_did_not_finish_is_refused_or_shows_what_is_missing(tmp_path: Path) -> None:
    folder = twin(tmp_path, put("status", value="cancelled"))
    edited(folder / "gamma.json", lambda log: {**log, "samples": log["samples"][:2]})
    with pytest.raises(InputError, match=r"gamma.json: found a run with status 'cancelled'.*accept='partial'"):
        read_campaign(folder, scorer="match")
    campaign = read_campaign(folder, scorer="match", accept="partial")
    assert str(campaign.coverage("gamma")) == "2 of 6 cells (4 absent)"
    assert "4 planned cells without a row" in campaign.notes


def test_a_log_of_a_run_that_died_has_only_its_journal(tmp_path: Path) -> None:
    members = inspect_ai._Members((MADE / "inspect/alpha.eval").read_bytes())
    with zipfile.ZipFile(tmp_path / "died.eval", "w") as archive:
        for member in ("_journal/start.json", "samples/i1_epoch_1.json"):
            archive.writestr(member, json.dumps(members.load(member), default=float))
    with pytest.raises(InputError, match="status 'started'"):
        read_campaign(tmp_path / "died.eval", scorer="match")
    assert str(read_campaign(tmp_path / "died.eval", scorer="match", accept="partial").coverage("alpha")) == "1 of 6 cells (5 absent)"


def test_an_invalidated_sample_is_ungraded_and_an_invalidated_log_refused(tmp_path: Path) -> None:
    folder = twin(tmp_path, put("samples", 0, "invalidation", value={"reason": "leaked"}))
    campaign = read_campaign(folder, scorer="match")
    assert campaign.outcome("gamma", "i1", "1") == "ungraded"
    assert campaign.details["gamma", "i1", "1"] == "invalidated: leaked"
    edited(folder / "gamma.json", put("invalidated", value=True))
    with pytest.raises(InputError, match=r"marked invalidated.*accept='invalidated'"):
        read_campaign(folder, scorer="match")


def test_a_harbor_job_that_planned_more_trials_is_unfinished(tmp_path: Path) -> None:
    shutil.copytree(MADE / "harbor", tmp_path / "harbor")
    shutil.rmtree(next((tmp_path / "harbor/job").glob("i3__b1*")))
    with pytest.raises(InputError, match=r"11 of the 12 trials that the job planned.*accept='partial'"):
        read_campaign(tmp_path / "harbor")
    assert read_campaign(tmp_path / "harbor", accept=["partial"]).coverage("made-agent with beta").missing == {"absent": 1}


def test_numbers_other_than_0_and_1_need_a_pass_condition() -> None:
    with pytest.raises(
        InputError, match=r"closeness value 0\.250 in sample 'i3', epoch '1'; expected 1 or 0; say what passes: passes=\">= 0\.5\""
    ):
        read_campaign(MADE / "inspect", scorer="closeness")
    campaign = read_campaign(MADE / "inspect", scorer="closeness", passes=">= 0.25")
    assert campaign.coverage("beta").missing == {"timeout": 1, "ungraded": 1}  # a bare NaN is no score
    assert int(campaign.of("alpha").passed.sum()) == 5


@pytest.mark.parametrize(
    ("passes", "said"), [("> 1", "no row that passes '> 1'"), ("good", "passes 'good'"), ("== x", "'x'|passes '== x'")]
)
def test_a_pass_condition_that_no_row_meets_or_that_is_none_is_refused(passes: str, said: str) -> None:
    assert re.search(said, str(refused(MADE / "inspect", scorer="closeness", passes=passes)))


def test_an_unchecked_mapping_says_so() -> None:
    notes = read_campaign(MADE / "langsmith").notes
    assert any("compare a few cells" in note for note in notes)
    assert any("named after the file" in note for note in notes)


def test_tables_join_too(tmp_path: Path) -> None:
    for name, outcome in (("a", "pass"), ("b", "fail")):
        (tmp_path / f"{name}.csv").write_text(f"instance,repetition,outcome\ni1,0,{outcome}\n")
    campaign = read_campaign(tmp_path, candidate_names="a.csv=A; b=B")
    assert campaign.notes == ("table: 2 files, 2 rows read = 2 cells",)
    assert [campaign.outcome(c, "i1", "0") for c in ("A", "B")] == ["pass", "fail"]
    (tmp_path / "b.csv").write_text("instance,repetition,outcome\ni1,0,perhaps\n")
    with pytest.raises(InputError, match=r"b\.csv, row 2, column outcome: found 'perhaps'"):
        read_campaign(tmp_path, candidate_names="a.csv=A; b=B")


def test_json_rows_and_parquet_are_tables(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = [{"model": "A", "task": {"id": i}, "seed": 0, "reward": r} for i, r in (("i1", 1.0), ("i2", 0.25))]
    columns = "candidate=model; instance=task.id; repetition=seed; outcome=reward; passes=== 1"
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    polars.DataFrame([{**row, "task.id": row["task"]["id"], "task": None} for row in rows]).write_parquet(tmp_path / "rows.parquet")
    digests = {read_campaign(tmp_path / f"rows.{end}", columns=columns).digest for end in ("json", "jsonl", "parquet")}
    assert len(digests) == 1
    assert words(read_campaign(tmp_path / "rows.json", columns=columns), "A") == [["pass"], ["fail"]]


# Refusals: each names the file and the place, what was found, what was expected, and what to do


def refused(path: Path, **options: Any) -> InputError:
    with pytest.raises(EvalkitError) as refusal:
        read_campaign(path, **options)
    error = refusal.value
    assert type(error) is InputError
    assert error.file, str(error)
    assert error.expected, str(error)
    assert error.todo, str(error)
    assert "Traceback" not in str(error)
    return error


def zip_of(*members: tuple[str, bytes, int], method: int = 93) -> bytes:
    """A zip whose members claim any size: (name, packed bytes, claimed size)."""
    out, central = b"", b""
    for name, packed, size in members:
        crc, coded = zlib.crc32(b""), name.encode()
        central += (
            struct.pack(
                "<4sHHHHHHIIIHHHHHII", b"PK\1\2", 20, 20, 0, method, 0, 33, crc, len(packed), size, len(coded), 0, 0, 0, 0, 0, len(out)
            )
            + coded
        )
        out += struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, method, 0, 33, crc, len(packed), size, len(coded), 0) + coded + packed
    return out + central + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, len(members), len(members), len(central), len(out), 0)


BOMB = zstandard.ZstdCompressor().compress(b"0" * 50_000_000)
DEEP = "[" * 200_000

# format: (file to break, options, {what is broken: (change or bytes, words of the refusal)})
BROKEN: dict[str, tuple[str, dict[str, str], dict[str, tuple[Any, str]]]] = {
    "inspect": (
        "inspect/beta.json",
        {"scorer": "match"},
        {
            "wrong version": (put("version", value=9), "version 9; expected an Inspect log of version 2"),
            "no model": (put("eval", "model", value=KeyError), "no model among|of no known format"),
            "no epoch": (put("samples", 1, "epoch", value=KeyError), "row 2: found no epoch"),
            "duplicate sample": (
                lambda log: {**log, "samples": [*log["samples"], log["samples"][0]]},
                r"rows 1, 7: found two rows for the cell \('beta', 'i1'",
            ),
            "no samples": (put("samples", value=[]), "status 'success' and no samples"),
            "unknown grade": (
                put("samples", 0, "scores", "match", "value", value="A"),
                "row 1: found match value 'A' in sample 'i1', epoch '1'; expected C, I, P, N",
            ),
            "a list as value": (put("samples", 0, "scores", "match", "value", value=[1]), "row 1: found match value"),
            "nobody scored": (lambda log: {**log, "samples": [{**s, "scores": {}, "error": None} for s in log["samples"]]}, "no score"),
        },
    ),
    "eval": (
        "inspect/alpha.eval",
        {"scorer": "match"},
        {
            "truncated": (lambda data: data[:-200], "a zip that breaks"),
            "another zip": (zip_of(("xl/workbook.xml", b"", 0)), "neither header.json nor"),
            "gigabytes": (zip_of(("header.json", BOMB, 2**32 - 2)), "unpack to gigabytes"),
            "many gigabytes": (zip_of(*((f"samples/{n}.json", b"", 2**32 - 2) for n in range(4))), "unpack to gigabytes"),
            "a size that lies": (zip_of(("header.json", BOMB, 100)), "other bytes than its size and checksum say"),
            "a method nobody knows": (zip_of(("header.json", b"x", 1), method=77), "cannot be unpacked"),
            "a broken frame": (zip_of(("header.json", b"not a frame", 11)), "cannot be unpacked"),
            "a member twice": (zip_of(("header.json", b"", 0), ("header.json", b"", 0)), "member 'header.json' twice"),
        },
    ),
    "promptfoo": (
        "promptfoo/results.json",
        {},
        {
            "wrong version": (put("results", "version", value=2), "results.version 2; expected 3"),
            "no success": (put("results", "results", 3, "success", value=KeyError), "row 4: found no success"),
            "success as text": (put("results", "results", 3, "success", value="yes"), "row 4: found success 'yes'; expected true or false"),
            "no provider": (put("results", "results", 3, "provider", value=KeyError), "row 4: found no provider"),
            "no testIdx": (put("results", "results", 3, "testIdx", value=None), "row 4: found testIdx None"),
            "no rows": (put("results", "results", value=[]), "no rows"),
            "rows as text": (put("results", "results", value="none"), "results.results 'none'; expected a list of rows"),
            "unknown reason": (put("results", "results", 0, "failureReason", value=7), "row 1: found failureReason 7; expected 0, 1 or 2"),
        },
    ),
    "lm-eval": (
        "lm_eval/alpha/samples_made_2026-01-05T10-00-00.000000.jsonl",
        {"scorer": "exact_match,first"},
        {
            "no doc_id": (put(2, "doc_id", value=KeyError), "row 3: found no doc_id"),
            "no metrics": (put(2, "metrics", value=KeyError), "row 3: found no metrics"),
            "a metric of text": (put(2, "exact_match", value="right"), "row 3: found exact_match 'right'"),
            "duplicate document": (put(1, "doc_id", value=0), r"rows 1, 2: found two rows for the cell \('alpha', '0'"),
            "a metric between 0 and 1": (put(1, "exact_match", value=0.4), r"row 2: found exact_match 0\.400; expected 1 or 0"),
        },
    ),
    "tau-bench": (
        "tau_bench/alpha.json",
        {},
        {
            "no trial": (put(2, "trial", value=KeyError), "row 3: found no trial"),
            "reward of 2": (put(2, "reward", value=2), "row 3: found reward 2; expected a number from 0 to 1"),
            "reward of text": (put(2, "reward", value="1"), "row 3: found reward '1'; expected a finite number"),
            "infinite reward": (put(2, "reward", value=float("inf")), "row 3: found reward"),
            "duplicate trial": (put(1, "task_id", value=0), r"rows 1, 2: found two rows for the cell \('alpha', '0'"),
            "a list of other things": (lambda _: [1, 2], "of no known format"),
        },
    ),
    "tau2-bench": (
        "tau2_bench/alpha.json",
        {},
        {
            "no agent": (put("info", "agent_info", "llm", value=KeyError), "no llm among implementation"),
            "no task_id": (put("simulations", 1, "task_id", value=KeyError), "row 2: found no task_id"),
            "reward of 3": (put("simulations", 1, "reward_info", "reward", value=3), "row 2: found reward '3'"),
            "reward of text": (put("simulations", 1, "reward_info", "reward", value="1"), "row 2: found reward '1'"),
            "duplicate trial": (put("simulations", 1, "task_id", value="i1"), "rows 1, 2: found two rows"),
            "no simulations": (put("simulations", value=[]), r"simulations \[\]; expected a list of simulations"),
        },
    ),
    "terminal-bench": (
        "terminal_bench/beta/results.json",
        {},
        {
            "verdict of text": (
                put("results", 1, "is_resolved", value="yes"),
                "row 2: found is_resolved 'yes'; expected true, false or null",
            ),
            "no verdict": (put("results", 1, "is_resolved", value=KeyError), "row 2: found no is_resolved"),
            "no task": (put("results", 1, "task_id", value=""), "row 2: found task_id ''"),
            "duplicate trial": (put("results", 1, "task_id", value="i1"), "rows 1, 2: found two rows"),
            "no results": (put("results", value=[]), "of no known format"),
        },
    ),
    "harbor": (
        "harbor/job/i1__a0x01/result.json",
        {},
        {
            "no agent": (put("agent_info", "name", value=KeyError), "no name among"),
            "no verifier": (put("verifier_result", value=KeyError), "no verifier_result among"),
            "two rewards": (put("verifier_result", "rewards", value={"reward": 1, "style": 0}), "2 rewards, reward, style"),
            "a reward of text": (put("verifier_result", "rewards", "reward", value="1"), "reward '1'; expected a finite number"),
            "rewards as a list": (put("verifier_result", "rewards", value=[1]), "verifier_result.rewards"),
            "half a reward": (put("verifier_result", "rewards", "reward", value=0.5), r"reward 0\.500; expected 1 or 0"),
        },
    ),
    "SWE-bench": (
        "swe_bench/alpha.made.json",
        {},
        {
            "the resolved alone": (lambda report: {"resolved": report["resolved_ids"]}, "a list of the resolved alone has no denominator"),
            "in two lists": (put("unresolved_ids", value=["made__one-1"]), "row 1: found 'made__one-1' twice|'made__one-1' twice"),
            "twice in a list": (put("resolved_ids", value=["made__one-1", "made__one-1"]), "'made__one-1' twice in resolved_ids"),
            "ids as numbers": (put("error_ids", value=[1]), "error_ids"),
            "a list as a number": (put("resolved_ids", value=3), "resolved_ids 3; expected a list of instance ids"),
        },
    ),
    "OpenAI evals": (
        "openai_evals/alpha_1.jsonl",
        {},
        {
            "no matches": (lambda lines: lines[:2], "no rows with type=match"),
            "no sample": (put(2, "sample_id", value=None), "row 3: found sample_id None"),
            "a verdict of text": (put(2, "data", "correct", value=[]), "row 3: found data.correct"),
            "duplicate sample": (put(3, "sample_id", value="i1"), "rows 3, 4: found two rows"),
            "another version": (put(0, "spec", value={}), "of no known format"),
        },
    ),
}


CASES = [
    pytest.param(file, options, change, said, id=f"{tool}: {what}")
    for tool, (file, options, broken) in BROKEN.items()
    for what, (change, said) in broken.items()
]


@pytest.mark.parametrize(("file", "options", "change", "said"), CASES)
def test_a_broken_file_is_refused_by_place_and_reason(file: str, options: dict[str, str], change: Any, said: str, tmp_path: Path) -> None:
    target = tmp_path / file
    shutil.copytree((MADE / file).parent, target.parent)
    if file.endswith(".eval"):
        target.write_bytes(change(target.read_bytes()) if callable(change) else change)
    else:
        edited(target, change)
    error = refused(target, **options)
    assert re.search(said, str(error)), str(error)
    assert error.file is not None
    assert target.name in error.file


@pytest.mark.parametrize("tool", [tool for tool in BROKEN if tool != "eval"])
@pytest.mark.parametrize("damage", ["truncated", "nested", "not UTF-8", "empty"])
def test_a_damaged_file_of_any_tool_is_refused(tool: str, damage: str, tmp_path: Path) -> None:
    file, options, _ = BROKEN[tool]
    data = (MADE / file).read_bytes()
    target = tmp_path / Path(file).name
    target.write_bytes(
        {"truncated": data[: len(data) * 2 // 3], "nested": DEEP.encode(), "not UTF-8": data[:40] + b"\xff" + data[40:], "empty": b""}[
            damage
        ]
    )
    words = {"truncated": "JSON that breaks", "nested": "nested beyond", "not UTF-8": "not UTF-8", "empty": "an empty file|for a table"}[
        damage
    ]
    error = refused(target, **(options if damage != "empty" else {}))
    assert re.search(words, str(error)), str(error)


@pytest.mark.parametrize("path", ["inspect", "tau_bench", "tau2_bench", "lm_eval", "swe_bench", "deepeval"])
def test_a_folder_with_a_stray_file_or_two_tools_is_refused(path: str, tmp_path: Path) -> None:
    folder = tmp_path / path
    shutil.copytree(MADE / path, folder)
    options = {"inspect": {"scorer": "match"}, "lm_eval": {"scorer": "exact_match,first"}}.get(path, {})
    (folder / ".hidden").write_text("left alone")
    read_campaign(folder, **options)
    stray = folder / "zz_notes.json"
    stray.write_text('{"about": "notes"}')
    error = refused(folder, **options)
    assert re.search(r"zz_notes.json: found JSON of no known format \(about\).*Inspect log \(eval, status and samples\)", str(error))
    shutil.copy(MADE / "promptfoo/results.json", stray)
    assert "files of one tool" in str(refused(folder, **options))
    stray.write_text("about,notes\n")
    assert "a table beside" in str(refused(folder, **options))


def test_results_without_their_samples_are_refused_by_what_is_missing(tmp_path: Path) -> None:
    shutil.copy(next((MADE / "lm_eval/alpha").glob("results*")), tmp_path)
    assert "results without the samples" in str(refused(tmp_path))


def test_a_key_twice_is_seen_where_it_matters(tmp_path: Path) -> None:
    target = tmp_path / "alpha.json"
    target.write_text('[{"task_id": 1, "trial": 0, "reward": 1, "reward": 0, "traj": {"a": 1, "a": 2}}]')
    assert re.search("row 1: found key 'reward' twice", str(refused(target)))
    target.write_text('[{"task_id": 1, "trial": 0, "reward": 1, "traj": {"a": 1, "a": 2}}]')
    assert read_campaign(target).rows == 1


def test_what_nobody_applies_is_refused() -> None:
    assert "scorer='x' for tau-bench results; expected no such choice" in str(refused(MADE / "tau_bench", scorer="x"))
    for wrong in (
        {"accept": "everything"},
        {"keep": "first"},
        {"repetition": "both"},
        {"candidate_names": "a"},
        {"candidate_names": {"nobody": "A"}},
    ):
        with pytest.raises(InputError, match="expected"):
            read_campaign(MADE / "tau_bench", **wrong)  # type: ignore[arg-type]


def test_candidates_are_named_by_file_folder_or_own_name_and_never_by_two_of_them() -> None:
    runs = MADE / "terminal_bench"
    assert read_campaign(runs, candidate_names={"terminal_bench/alpha": "A", "beta": "B"}).candidates == ("A", "B")
    with pytest.raises(InputError, match=r"candidate_names run-1, alpha for one file|candidate_names alpha, run-1 for one file"):
        read_campaign(runs, candidate_names={"run-1": "A", "alpha": "B"})
    with pytest.raises(InputError, match=r"candidate_names for gamma; expected names for a file, a folder or a candidate: alpha, beta"):
        read_campaign(runs, candidate_names={"gamma": "A"})


def test_nothing_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no paths"):
        read_campaign([])
    for path in (tmp_path, str(tmp_path / "*.eval"), tmp_path / "absent.json"):
        with pytest.raises(InputError, match="check the path"):
            read_campaign(path)


def test_a_packed_file_that_unpacks_to_gigabytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "_MOST_BYTES", 1000)
    for name, pack in (("a.json.gz", gzip.compress), ("a.json.zst", zstandard.ZstdCompressor().compress)):
        (tmp_path / name).write_bytes(pack(b"[" + b" " * 5000 + b"]"))
        assert "unpacks to gigabytes" in str(refused(tmp_path / name))


def test_a_file_that_plans_more_cells_than_a_campaign_holds_is_refused(tmp_path: Path) -> None:
    shutil.copy(MADE / "tau2_bench/alpha.json", tmp_path / "alpha.json")
    edited(tmp_path / "alpha.json", put("info", "num_trials", value=900_000))
    edited(tmp_path / "alpha.json", lambda whole: {**whole, "tasks": [{"id": str(n)} for n in range(100)]})
    with pytest.raises(InputError, match="plans 90000000 cells"):
        read_campaign(tmp_path / "alpha.json")


JUNK = (None, "x", -1, [], {}, True, float("nan"), 10**30, [[]], {"a": 1})


def every_path(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key in value if isinstance(value, dict) else range(min(len(value), 2)) if isinstance(value, list) else ():
        yield from every_path(value[key], (*path, key))


@pytest.mark.parametrize("tool", [tool for tool in BROKEN if tool != "eval"])
def test_junk_anywhere_in_a_file_is_read_or_refused_and_never_a_traceback(tool: str, tmp_path: Path) -> None:
    file, options, _ = BROKEN[tool]
    target = tmp_path / file
    shutil.copytree((MADE / file).parent, target.parent)
    original = target.read_text()
    whole = [json.loads(line) for line in original.splitlines()] if file.endswith("l") else json.loads(original)
    refusals = 0
    for n, path in enumerate(path for path in every_path(whole) if path):
        for junk in JUNK[n % 4 :: 4]:
            target.write_text(original)
            edited(target, put(*path, value=junk))
            try:
                read_campaign(target, **options)
            except EvalkitError as error:
                refusals += bool(str(error))
    assert refusals > 5


# The real files


# What fuzzing found: each ended in a traceback


def test_an_archive_whose_directory_points_before_its_start_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.eval", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("header.json", (MADE / "inspect/beta.json").read_text("utf-8"))
    data = bytearray((tmp_path / "a.eval").read_bytes())
    end = data.rindex(b"PK\5\6") + 16  # where the directory is said to begin
    data[end : end + 4] = struct.pack("<I", struct.unpack("<I", data[end : end + 4])[0] + 5)
    (tmp_path / "a.eval").write_bytes(data)
    with pytest.raises(InputError, match=r"a zip that breaks|that cannot be unpacked"):
        read_campaign(tmp_path / "a.eval", scorer="match")


def test_half_a_character_in_a_label_or_a_message_is_shown_as_its_escape(tmp_path: Path) -> None:
    whole = (MADE / "promptfoo/results.json").read_text("utf-8")
    broken = whole.replace('"label": "beta"', '"label": "\\ud83d"').replace("the sandbox stopped", "\\ud83d")
    (tmp_path / "half.json").write_text(broken, "utf-8")
    campaign = read_campaign(tmp_path / "half.json")
    assert campaign.candidates == ("\\ud83d", "alpha")
    assert any("\\ud83d" in said for said in campaign.details.values())
    assert table.campaign(campaign_csv(campaign).encode()).digest == campaign.digest


def test_a_broken_parquet_of_requests_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "requests.parquet").write_bytes(b"PAR1" + bytes(40))
    with pytest.raises(InputError, match=r"requests\.parquet: found Parquet that cannot be read"):
        tabulate_tally(str(tmp_path / "requests.parquet"), str(tmp_path / "counts.csv"))


@real
def test_inspect_logs_reproduce_their_figures() -> None:
    published = {"steady": (Fraction(43, 48), "0.8958"), "erratic": (Fraction(7, 8), "0.8750"), "broken": (Fraction(23, 24), "0.9583")}
    for pattern in ("gen__*.eval", "gen__*.json.gz"):
        campaign = read_campaign(str(REAL / "inspect" / pattern), scorer="graded")
        assert campaign.repetitions == ("1", "2", "3", "4")
        assert campaign.groups == ("odd", "even") * 3
        for name, (accuracy, _) in published.items():
            assert own_mean(campaign, f"mockllm/{name}") == accuracy
        assert sum("the log's own accuracy 0.9583 leaves out 2 of 24 cells" in note for note in campaign.notes) == 1
    by_file = [read_campaign(file, scorer="graded").notes for file in (REAL / "inspect").glob("gen__*")]
    assert not any("publishes" in note for notes in by_file for note in notes)
    twins = [read_campaign(str(REAL / "inspect" / pattern), scorer="graded").digest for pattern in ("gen__*.eval", "gen__*.json.gz")]
    assert twins[0] == twins[1]


def own_mean(campaign: Campaign, candidate: str) -> Fraction:
    """The log's own figure: the mean over instances of the mean over the scored epochs."""
    score = campaign.columns["score"]
    c = campaign.candidates.index(candidate)
    means = []
    for i in range(len(campaign.instances)):
        there = score.present[:, c, i]
        means.append(Fraction(int(score.numerators[there, c, i].sum()), score.denominator * int(there.sum())))
    return sum(means, Fraction(0)) / len(means)


@real
def test_inspect_closeness_is_a_mean_without_its_nans() -> None:
    campaign = read_campaign(str(REAL / "inspect/gen__*.json.gz"), scorer="closeness", passes="== 1")
    assert [f"{float(own_mean(campaign, f'mockllm/{name}')):.4f}" for name in ("steady", "broken", "erratic")] == [
        "0.9792",
        "1.0000",
        "0.9646",
    ]


@real
def test_inspect_reducers_are_reductions_of_the_same_cells() -> None:
    one = read_campaign(str(REAL / "inspect/reducers*"), scorer="multi.right").of("mockllm/reduced")
    assert (cell_mean(one), pass_at(2)(one)) == (Fraction("0.4375"), Fraction("0.625"))
    assert Fraction(at_least(3)(one), 4) == Fraction(1, 4)


@pytest.fixture
def flaky() -> Campaign:
    names = {f"mockllm/{name}": name for name in ("steady", "erratic", "broken")}
    return read_campaign(str(REAL / "inspect/gen__*.json.gz"), scorer="graded", candidate_names=names)


@real
def test_the_log_ranks_broken_first_and_the_kit_does_not_rank_it(flaky: Campaign) -> None:
    assert max(flaky.candidates, key=lambda name: own_mean(flaky, name)) == "broken"
    decision = decide(flaky, ReleaseRule("plain", "team", "ship", fail_closed), incumbent="erratic")
    assert str(flaky.coverage("broken")) == "22 of 24 cells (2 error)"
    assert flaky.missing("broken") == [("q3", "2", "error"), ("q5", "4", "error")]
    assert next(s for s in decision.standings if s.candidate == "broken").place is None


@real
def test_as_scores_steady_leads_and_the_other_two_tie(flaky: Campaign) -> None:
    assert {name: mean_score(flaky.of(name, ["error"])) for name in flaky.candidates} == {
        "steady": Fraction(43, 48), "broken": Fraction(7, 8), "erratic": Fraction(7, 8),
    }  # fmt: skip


@real
def test_as_passes_with_error_counted_as_fail_steady_and_broken_tie(flaky: Campaign) -> None:
    rule = ReleaseRule("fail closed", "team", "ship", fail_closed, (cell_mean,), count_as_fail=("error",))
    decision = decide(flaky, rule, incumbent="erratic")
    for name in ("steady", "broken"):
        counts = flaky.of(name, ["error"])
        assert (fail_closed(counts), int(counts.passed.sum()), counts.cells) == (3, 21, 24)
    assert set(decision.winner) == {"steady", "broken"}


@real
def test_promptfoo_counts_are_the_files_own() -> None:
    campaign = read_campaign(REAL / "promptfoo/out.json")
    totals = campaign.tally_by_code.sum(axis=(1, 2))
    assert (totals[1], totals[2], totals[3]) == (23, 19, 3)
    assert campaign.instances == ("t1", "t2", "t3", "t4", "t5")
    assert campaign.repetitions == ("1", "2", "3")
    assert not any("counts" in note for note in campaign.notes)


@real
@pytest.mark.parametrize(
    ("run", "task", "scorer", "figure"),
    [
        ("steady", "add3", "exact_match,first", Fraction(7, 8)),
        ("steady", "add3", "exact_match,maj@3", Fraction(1)),
        ("steady", "larger", "acc,none", Fraction(1, 3)),
        ("erratic", "add3", "exact_match,first", Fraction(1, 2)),
        ("erratic", "add3", "exact_match,maj@3", Fraction(5, 8)),
        ("erratic", "larger", "acc,none", Fraction(1, 2)),
    ],
)
def test_lm_eval_reproduces_its_results(run: str, task: str, scorer: str, figure: Fraction) -> None:
    campaign = read_campaign(REAL / "lm-eval" / run, scorer=scorer, task=task, candidate_names={run: run})
    assert cell_mean(campaign.of(run)) == figure
    assert not any("publishes" in note for note in campaign.notes)


@real
def test_tau_bench_reproduces_its_published_pass_hat() -> None:
    one = read_campaign(REAL / "tau-bench").of("gpt-4o-airline")
    assert [f"{float(pass_hat(k)(one)):.3f}" for k in (1, 2, 3, 4)] == ["0.420", "0.273", "0.220", "0.200"]
    assert fail_closed(one) == 10


@real
def test_tau2_bench_reproduces_the_leaderboard_and_takes_the_callers_name() -> None:
    campaign = read_campaign(REAL / "tau2-bench", candidate_names="gpt-4.1-mini-2025-04-14=ToolOrchestra")
    assert cell_mean(campaign.of("ToolOrchestra")) == Fraction(28, 50)
    assert set(campaign.groups or ()) == {"airline"}


@real
def test_openai_evals_reproduce_their_reports() -> None:
    campaign = read_campaign(REAL / "openai-evals")
    by_run = {
        c: [sum(campaign.outcome(c, i, r) == "pass" for i in campaign.instances) for r in campaign.repetitions] for c in campaign.candidates
    }
    assert by_run == {"flaky/erratic": [2, 4, 2], "flaky/steady": [6, 6, 6]}
    assert not any("publishes" in note for note in campaign.notes)


@real
def test_deepeval_keeps_its_errors_apart() -> None:
    campaign = read_campaign(REAL / "deepeval")
    totals = campaign.tally_by_code.sum(axis=(1, 2))
    assert (totals[1], totals[2], totals[3]) == (8, 5, 2)

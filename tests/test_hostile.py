"""Input that means harm: it may not run, leave its folder, fill the memory, wait for ever, become markup, or end in a traceback."""

from __future__ import annotations

import ast
import csv
import gzip
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import zstandard
from papermill.translators import PythonTranslator
from test_sources import MADE, zip_of

from evalkit import EvalkitError, read_campaign, read_reference, read_rule, read_tallies, report
from evalkit.__main__ import main
from evalkit.records import bundled
from evalkit.report import FILES, LOCK
from evalkit.sources import inspect_ai, read_inventory
from evalkit.tabulate import tabulate, tabulate_tally

TABLE = "candidate,instance,repetition,outcome\n"
CAMPAIGN = bundled("fixtures/claude_merge.csv")
READERS: dict[str, Callable[[Any], object]] = {
    "campaign": read_campaign, "inventory": read_inventory, "tallies": read_tallies, "rule": read_rule, "reference": read_reference,
}  # fmt: skip


def command(*words: object) -> int:
    return main([str(word) for word in words])


def release(output: Path, *words: object, **parameters: object) -> int:
    return command("report", "release", *(part for pair in parameters.items() for part in ("-p", *pair)), *words, "-o", output)


def said(read: Callable[..., object], *given: object, **options: object) -> str:
    with pytest.raises(EvalkitError) as refusal:
        read(*given, **options)
    sentence = str(refusal.value)
    assert sentence.isprintable()
    assert len(sentence) < 2000
    return sentence


def in_process(notebook: Path, _target: Path, parameters: dict[str, str]) -> str:
    """The executed notebook without a kernel: what its cells show, in the format that a kernel would have written."""
    content, bound = json.loads(notebook.read_text("utf-8")), {}
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            *lines, last = ast.parse("".join(cell["source"])).body
            ends = isinstance(last, ast.Expr)
            exec(compile(ast.Module(lines if ends else [*lines, last], []), "cell", "exec"), bound)
            if "parameters" in cell["metadata"]["tags"]:
                exec(PythonTranslator.codify(parameters), bound)  # papermill's own way to write them into a cell
            data = eval(compile(ast.Expression(last.value), "cell", "eval"), bound)._repr_mimebundle_() if ends else {}
            cell["outputs"] = [{"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}] if data else []
    return json.dumps(content)


# Bombs


ZEROS = b"0" * 2**22
BOMBS: dict[str, Callable[[], bytes]] = {
    "a gzip of zeros": lambda: gzip.compress(ZEROS, 9) * 20,
    "a Zstandard file of zeros": lambda: zstandard.ZstdCompressor().compress(ZEROS) * 100,
    "a member of a terabyte, as it says": lambda: zip_of(*((f"samples/{n}.json", b"", 2**32 - 2) for n in range(256))),
    "members that are fifty-fold in one place": lambda: overlapping(50),
    "a member that holds more than it says": lambda: zip_of(("header.json", zstandard.ZstdCompressor().compress(ZEROS * 50), 100)),
    "20,000 members, and the last one twice": lambda: zip_of(*((f"samples/{min(n, 19_998)}.json", b"", 0) for n in range(20_000))),
    "an object with 20,000 keys, and the last one twice": lambda: json.dumps(
        [{f"k{n}": n for n in range(20_000)} | {"twice": 1}]
    ).encode().replace(b'"k0"', b'"twice"'),
    "brackets, a million deep": lambda: b"[" * 10**6,
    "objects, a hundred thousand deep": lambda: b'{"a":' * 10**5,
    "a line of a million columns": lambda: b"candidate,instance,repetition,outcome" + b",x" * 10**6,
    "a field of ten megabytes in an open quote": lambda: TABLE.encode() + b'"' + b"x" * 10**7,
}  # fmt: skip
CHILD = """
import resource, sys
from evalkit import EvalkitError, read_campaign
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
for name in sys.argv[1:]:
    try:
        print(name, "read", read_campaign(name))
    except EvalkitError as refusal:
        print(refusal)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def overlapping(times: int) -> bytes:
    """A zip whose members all lie in the place of the first."""
    whole = zip_of(*((f"samples/{n:03d}.json", zstandard.ZstdCompressor().compress(ZEROS), len(ZEROS)) for n in range(times)))
    start = whole.index(b"PK\1\2")
    central = bytearray(whole[start:])
    for at in (found.start() for found in re.finditer(re.escape(b"PK\1\2"), bytes(central))):
        central[at + 42 : at + 46] = bytes(4)
    return whole[:start] + bytes(central)


def test_bombs_are_refused_in_bounded_memory_and_time(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    paths = [tmp_path / f"{place}.eval" for place, _ in enumerate(BOMBS)]
    for path, make in zip(paths, BOMBS.values(), strict=True):
        path.write_bytes(make())
    done = subprocess.run([sys.executable, "-c", CHILD, *map(str, paths)], capture_output=True, text=True, timeout=60, check=False)
    *sentences, megabytes = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr[-2000:]
    for name, path, sentence in zip(BOMBS, paths, sentences, strict=True):
        assert sentence.startswith(f"{path}"), (name, sentence)
        assert ": found " in sentence
    assert int(megabytes) < 500, f"{megabytes} MiB"


def test_members_that_lie_on_one_another_are_refused_and_told_apart_from_those_that_do_not() -> None:
    assert "members that overlap" in said(inspect_ai.open_archive, overlapping(2))
    assert "neither header.json" in said(inspect_ai.open_archive, zip_of(("a", b"x", 1), ("b", b"y", 1)))


def test_a_small_packed_file_may_be_packed_as_well_as_it_likes(tmp_path: Path) -> None:
    """The bound is on what is large: a table of one repeated word packs a thousandfold too."""
    rows = "".join(f"A,i{n},0,pass,{'x' * 5000}\n" for n in range(2000))
    (tmp_path / "a.csv.zst").write_bytes(zstandard.ZstdCompressor(level=19).compress((TABLE.strip() + ",detail\n" + rows).encode()))
    assert len((tmp_path / "a.csv.zst").read_bytes()) < len(rows) // 1000
    assert read_campaign(tmp_path / "a.csv.zst").rows == 2000


# Numbers and nesting


NUMBERS = ("1" + "0" * 400, "1e999", "-1e999", "9" * 10**5, "0." + "3" * 10**5, "1e999999999999", "Infinity", "-nan", "0x10", "1_000", "٣")


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:12])
def test_a_number_without_end_is_refused_wherever_a_number_may_stand(tmp_path: Path, number: str) -> None:
    (tmp_path / "c.csv").write_text(f"{TABLE.strip()},cost\nA,i1,0,pass,{number}\n")
    assert "column cost" in said(read_campaign, tmp_path / "c.csv")
    (tmp_path / "t.csv").write_text(f"period,group,passed,assessed,requested\na,x,{number},{number},{number}\n")
    said(read_tallies, tmp_path / "t.csv")
    rule = {"rule_id": "r", "owner": "o", "purpose": "p", "reduction": "fail_closed"}
    for key, value in (("floor", number), ("reduction", f"at_least({number})"), ("margin", number)):
        (tmp_path / "r.json").write_text(json.dumps({**rule, key: value}))
        said(read_rule, tmp_path / "r.json")
    (tmp_path / "r.json").write_text(json.dumps({**rule, "floor": 0}).replace("0", number))
    said(read_rule, tmp_path / "r.json")
    said(report.release, picker=f"pass_hat({number})")
    said(read_campaign, CAMPAIGN, passes=f">= {number}")
    (tmp_path / "j.json").write_text((MADE / "tau_bench/alpha.json").read_text().replace('"reward": 1.0', f'"reward": {number}', 1))
    said(read_campaign, tmp_path / "j.json")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", ["[" * 10**5, '{"a":' * 10**5, "[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500])
def test_deep_nesting_is_refused_by_every_reader(tmp_path: Path, reader: str, text: str) -> None:
    (tmp_path / "deep.json").write_text(text)
    assert said(READERS[reader], tmp_path / "deep.json").startswith(f"{tmp_path}")


# YAML


YAML = {
    "an object": "incumbent: !!python/object/apply:os.system ['touch ran']",
    "an object of a text": "incumbent: !!python/object/apply:os.system touch ran",
    "a name": "incumbent: !!python/name:os.system",
    "a module": "incumbent: !!python/module:antigravity x",
    "a tag of ours": "incumbent: !mine BASELINE",
    "bytes": "incumbent: !!binary QkFTRUxJTkU=",
    "a tag on the name": "!!python/name:os.system incumbent: BASELINE",
    "a merge": "<<: {incumbent: BASELINE}",
    "laughs": "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nincumbent: *c",
    "a bomb of anchors": "\n".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9) if n else 'x'}]" for n in range(30)),
    "two documents": "incumbent: BASELINE\n---\nincumbent: CLAUDE",
    "depth": "incumbent: " + "[" * 400,
    "depth in blocks": "\n".join(" " * n + "a:" for n in range(1000)),
    "size": "incumbent: BASELINE  # " + "x" * 2_000_000,
    "a NUL": 'incumbent: "a\\0b"',
    "half a character": 'incumbent: "\\ud800"',
    "not text": "incumbent: \xff",
}


@pytest.mark.parametrize("name", YAML)
def test_yaml_that_is_not_plain_data_is_refused_and_runs_nothing(tmp_path: Path, monkeypatch, capsys, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_bytes(YAML[name].encode("latin-1"))
    assert release(Path("out"), "-f", "p.yaml") == 12
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err.startswith("refused: ")) == ("", 1, True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [LOCK, "out", "p.yaml"]


# Files that are no files, and names that lead elsewhere


def places(tmp_path: Path) -> dict[str, Path]:
    """What may stand where a file should, by name."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "empty").mkdir()
    (tmp_path / "to a device").symlink_to("/dev/zero")
    (tmp_path / "to a pipe").symlink_to("pipe")
    own = {path.name: path for path in tmp_path.iterdir()}
    return {**own, "a device": Path("/dev/zero"), "an endless name": tmp_path / ("x" * 5000), "a process": Path("/proc/self/mem")}


@pytest.mark.skipif(not hasattr(os, "mkfifo") or not Path("/dev/zero").exists(), reason="no pipes or devices in this file system")
def test_what_is_no_file_is_refused_by_every_reader_and_nobody_waits(tmp_path: Path, monkeypatch, capsys) -> None:
    found = places(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, path in found.items():
        for read in READERS.values():
            assert said(read, path)
        said(tabulate, path, "out.csv")
        said(tabulate_tally, path, "out.csv")
        said(read_campaign, CAMPAIGN, inventory=path)
        assert release(tmp_path / "run", "-f", path) == 12, name
        for parameter in ("campaign", "rule", "inventory", "reference"):
            assert release(tmp_path / "run", **{parameter: path, "incumbent": "x"}) == 12, name
    assert "Traceback" not in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(CAMPAIGN)
    (tmp_path / "again.csv").symlink_to("link.csv")
    assert read_campaign(tmp_path / "again.csv").digest == read_campaign().digest
    (tmp_path / "again.csv").unlink()
    assert read_campaign(tmp_path).digest == read_campaign().digest


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in this file system")
def test_a_folder_is_read_whole_or_refused(tmp_path: Path) -> None:
    """Results behind a link that leads nowhere are results that are missing."""
    folder, other = tmp_path / "folder", tmp_path / "other"
    for place in (folder / "in", other):
        place.mkdir(parents=True)
    rows = CAMPAIGN.read_text().splitlines()
    (folder / "in" / "a.csv").write_text("\n".join(rows[:13]))
    (other / "b.csv").write_text("\n".join([rows[0], *rows[13:]]))
    (folder / "in" / "latest").symlink_to("../in")
    (folder / ".hidden").symlink_to("nowhere")
    assert len(read_campaign(folder).candidates) == 1
    (folder / "in" / "more").symlink_to(other)
    assert "a link to a folder elsewhere" in said(read_campaign, folder)
    assert read_campaign([folder / "in" / "a.csv", folder / "in" / "more"]).digest == read_campaign().digest
    (folder / "in" / "more").unlink()
    (folder / "in" / "b.csv").symlink_to("nowhere.csv")
    assert "No such file" in said(read_campaign, folder)
    (folder / "in" / "b.csv").unlink()
    os.mkfifo(folder / "in" / "b.csv")
    assert "a pipe or a device" in said(read_campaign, folder)


@pytest.mark.parametrize(
    "name", ["../../evil.json", "/evil.json", "C:\\evil.json", "samples/../../../evil.json", "samples/\x00.json", "~/evil.json"]
)
def test_a_member_never_becomes_a_path(tmp_path: Path, name: str) -> None:
    target = tmp_path / "in" / "in" / "log.eval"
    target.parent.mkdir(parents=True)
    members = inspect_ai._Members((MADE / "inspect/alpha.eval").read_bytes())
    with zipfile.ZipFile(target, "w") as new:
        for member in members.infos:
            new.writestr(member, json.dumps(members.load(member), default=float))
        new.writestr(name, "{}")
        link = zipfile.ZipInfo("link.json")
        link.external_attr = 0o120777 << 16
        new.writestr(link, "../../evil.json")
    before = everything(tmp_path)
    if name.startswith("samples/") and name.endswith(".json") and "\0" not in name:
        assert "no id" in said(read_campaign, target, scorer="match")
    else:
        assert read_campaign(target, scorer="match").candidates == ("alpha",)
    assert everything(tmp_path) == before


def everything(folder: Path) -> list[Path]:
    return sorted([*folder.rglob("*"), *Path.cwd().iterdir(), *Path("/").iterdir(), *Path.home().iterdir()])


@pytest.mark.usefixtures("_executed")
@pytest.mark.parametrize(
    "folder", ["{campaign}", "{}", "{0.__class__}", "{pm[run_uuid]}", "%s $HOME `x` 'q' \"q\"", "-x", "a\nb", "\x1b[31m"]
)
def test_a_folder_with_any_name_is_that_folder(tmp_path: Path, monkeypatch, capsys, folder: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "_execute", lambda notebook, target, parameters: EXECUTED[0])
    assert release(tmp_path / folder) == 0
    assert {path.name for path in tmp_path.iterdir()} == {folder}
    assert {path.name for path in (tmp_path / folder).iterdir()} == {*FILES, LOCK}
    assert report._literal(Path(folder)).format(campaign="elsewhere", pm={}) == str(Path(folder))
    assert "\x1b" not in capsys.readouterr().out


EXECUTED: list[str] = []


@pytest.fixture(scope="module")
def _executed() -> None:
    EXECUTED.append(in_process(bundled("notebooks/report_release.ipynb"), Path(), {}))


# Names that are markup, and parameters that are code


FORMULAS = ("=HYPERLINK(1)", "+1+1", "-1+1", "@SUM(1)", "＝1+1")
NAMES = (
    "<script>ran()</script>", "<img src=x onerror=ran()>", "[x](javascript:ran())", "![x](http://a.invalid/x)", "$$\\input{/etc/passwd}$$",
    "\\(\\href{javascript:ran()}{x}\\)", "\x1b]0;title\x07\x1b[31mred", "\u202egpj.exe", "`{{7*7}}`{% raw %}", "&lt;script&gt;",
    "|a|b|\n|-|-|", "# heading", "<!--", "]]>", "</title></style><script>ran()</script>", *FORMULAS,
)  # fmt: skip


class Tags(HTMLParser):
    """The tags of a page, and what could run or fetch in them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.bad: list[object] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.bad += [(name, value) for name, value in attrs if name.startswith("on")]
        self.bad += [
            (name, value) for name, value in attrs if name in ("href", "src") and not (value or "").startswith(("data:image/", "#"))
        ]


def harmless(output: Path, told: str) -> None:
    """Every file and every line of a run shows the names as text."""
    page, summary, record = ((output / name).read_text("utf-8") for name in ("report.html", "summary.md", "decision.json"))
    tags = Tags(page)
    assert not tags.tags & {"script", "iframe", "object", "embed", "form", "input", "svg", "a", "base", "link"}
    assert tags.bad == []
    assert "default-src 'none'" in page
    for text in (page, summary, record, told):
        assert all(ch == "\n" or ch.isprintable() for ch in text)
    assert record.isascii()
    for start in ("<", "[x](", "![x](", "$$", "\\("):
        assert not re.search(rf"(?<!\\){re.escape(start)}", summary), start
    for cell in json.loads((output / "report.ipynb").read_text("utf-8"))["cells"]:
        for made in cell.get("outputs", ()):
            assert set(made.get("data", {})) & {"text/markdown", "text/latex", "application/javascript", "image/svg+xml"} == set()
            assert Tags("".join(made.get("data", {}).get("text/html", ""))).bad == []
    assert {path.name for path in output.iterdir()} <= {*FILES, LOCK}


def test_names_of_a_campaign_are_text_in_every_file_of_a_run(tmp_path: Path, monkeypatch, capfd) -> None:
    """Candidates, instances, repetitions, groups, details, the rule and who signed it."""
    monkeypatch.setattr(report, "_execute", in_process)
    one, two = NAMES[0], NAMES[4]
    with (tmp_path / "c.csv").open("w", newline="") as stream:
        write = csv.writer(stream)
        write.writerow([*TABLE.strip().split(","), "group", "detail"])
        for candidate in (one, two):
            for n, name in enumerate(NAMES):
                for repetition in NAMES[1:3]:
                    outcome = "error" if candidate == two and n > 10 else "pass"
                    write.writerow([candidate, f"{name}{n}".replace("\n", " "), repetition, outcome, NAMES[n % 4], FORMULAS[n % 5]])
    rule = {"rule_id": NAMES[4], "owner": NAMES[1], "purpose": NAMES[2], "reduction": "fail_closed"}
    (tmp_path / "r.json").write_text(json.dumps(rule))
    given = {"campaign": tmp_path / "c.csv", "rule": tmp_path / "r.json", "incumbent": two, "sign_offs": f"safety={NAMES[0]}"}
    assert release(tmp_path / "out", **given) in (0, 10, 11)
    harmless(tmp_path / "out", "".join(capfd.readouterr()))
    with (tmp_path / "out" / "rerun.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * (len(NAMES) - 11)
    assert not [row["detail"] for row in rows if row["detail"].startswith(("=", "+", "-", "@", "＝"))]


def test_names_of_a_tally_are_text_in_every_file_of_a_run(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.setattr(report, "_execute", in_process)
    groups, (before, after) = NAMES[:4], NAMES[4:6]
    with (tmp_path / "t.csv").open("w", newline="") as stream:
        write = csv.writer(stream)
        write.writerow(["period", "group", "passed", "assessed", "requested"])
        write.writerows([period, group, n + 1, 9, 9] for period in (before, after) for n, group in enumerate(groups))
    weights = dict.fromkeys(groups, "1/4")
    record = {"reference_id": NAMES[0], "grouping_rule": NAMES[4], "weights": weights, "missing_group_policy": "comparison_unavailable",
              "grader_version": NAMES[2], "purpose": NAMES[3]}  # fmt: skip
    (tmp_path / "r.json").write_text(json.dumps(record))
    given = {"tallies": tmp_path / "t.csv", "baseline": before, "candidate": after, "reference": tmp_path / "r.json"}
    assert command("report", "mix", *(part for pair in given.items() for part in ("-p", *pair)), "-o", tmp_path / "out") == 0
    harmless(tmp_path / "out", "".join(capfd.readouterr()))


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_shows_a_name_as_text_on_the_terminal_and_in_a_job_summary(tmp_path: Path, monkeypatch, capsys, name: str) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for words in (["-p", "incumbent", name], ["-p", name, "x"], ["-p", "campaign", name], ["-p", "picker", name]):
        monkeypatch.setattr(sys, "argv", ["evalkit", "report", "release", *words, "-o", str(tmp_path / "out")])
        monkeypatch.setattr(report, "_execute", lambda notebook, target, parameters: report.release(**parameters))
        assert main() == 12
    out, err = capsys.readouterr()
    shown = summary.read_text("utf-8")
    assert all(ch == "\n" or ch.isprintable() for ch in out + err + shown)
    assert Tags(shown).tags == set()
    assert not re.search(r"(?<!\\)(\]\(|\$\$|`)", shown)


CODE = (
    '"; import os; os.system("touch ran") #', "'''\nopen('ran', 'w')\n'''", '\\"\nopen("ran", "w")\n#', "{__import__('os').system('touch ran')}",
    "{pm[run_uuid].__class__}", "$(touch ran)", "`touch ran`", "!touch ran", "%%bash\ntouch ran", "__import__('os').system('touch ran')",
    "\\", '\\"', "\r\nopen('ran', 'w')", "\u2028open('ran', 'w')", "%run evil.py", "\x00",
)  # fmt: skip


def test_a_parameter_that_is_code_is_text_and_runs_nothing(tmp_path: Path, monkeypatch, capfd) -> None:
    """As papermill writes it into a cell, and as the kit reads it: every parameter but the files holds code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "_execute", in_process)
    assert release(Path("out"), incumbent=" ".join(CODE[:-1]), picker=CODE[1], scorer=CODE[2], columns=CODE[3], task=CODE[5]) == 12
    for name in (
        "incumbent",
        "picker",
        "sign_offs",
        "repetition",
        "candidate_names",
        "columns",
        "scorer",
        "passes",
        "group",
        "task",
        "accept",
        "keep",
    ):
        for code in CODE:
            if name not in ("incumbent", "sign_offs"):
                said(report.release, campaign=str(CAMPAIGN), incumbent="BASELINE", **{name: code})
    for code in CODE[:-1]:
        bound: dict[str, object] = {}
        exec(PythonTranslator.codify({"incumbent": code}), {}, bound)
        assert bound == {"incumbent": code}
    assert "Traceback" not in "".join(capfd.readouterr())
    assert sorted(path.name for path in tmp_path.rglob("*")) == [LOCK, "out"]


# Tables that a spreadsheet opens


def test_a_formula_in_what_the_kit_may_change_is_text_and_in_a_name_is_said(tmp_path: Path) -> None:
    """An id stays as it is, since another id would be another instance, and the note says so; a detail gets an apostrophe."""
    rows = [[f"{text}c", f"{text}i", "=r", "error", text] for text in FORMULAS]
    with (tmp_path / "a.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [[*TABLE.strip().split(","), "detail"], *rows, ["c", "i", "=r", "error", "\n=1"], ["c", "j", "=r", "error", "\r=1"]]
        )
    notes = tabulate(tmp_path / "a.csv", tmp_path / "b.csv")
    with (tmp_path / "b.csv").open(newline="") as stream:
        made = list(csv.DictReader(stream))
    details = {row["detail"] for row in made} - {""}
    assert None not in details
    assert details == {f"'{text}" for text in (*FORMULAS, "\n=1", "\r=1")}
    assert read_campaign(tmp_path / "b.csv").digest == read_campaign(tmp_path / "a.csv").digest
    assert notes[-1].startswith(f"{2 * len(FORMULAS) + 1} names begin like a formula")


def test_a_formula_among_the_names_of_a_tally_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("period,group,passed,assessed,requested\n=1+1,@x,1,2,3\n")
    assert "2 names begin like a formula" in tabulate_tally(tmp_path / "a.csv", tmp_path / "b.csv")[-1]

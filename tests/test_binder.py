"""The Binder image, as far as it can be judged without building one: the pins are those of make and CI, and the build pack reads them."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
BINDER = ROOT / "binder"
LINES = (BINDER / "requirements.txt").read_text("utf-8").splitlines()
PINS = [Requirement(line) for line in LINES]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHON = re.fullmatch(r"python-(3\.\d+)\n", (BINDER / "runtime.txt").read_text("utf-8"))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(python: str) -> dict[str, str]:
    """The pins that a Linux machine with this Python installs."""
    machine = {"python_version": python.rpartition(".")[0], "python_full_version": python, "sys_platform": "linux", "os_name": "posix"}
    return {normal(pin.name): str(pin.specifier)[2:] for pin in PINS if pin.marker is None or pin.marker.evaluate(machine)}


def test_the_runtime_is_one_that_the_package_accepts() -> None:
    assert PYTHON is not None  # without this file, or with 3.11.7 in it, Binder chooses another Python or refuses
    assert f"{PYTHON[1]}.9" in Requirement(f"evalkit{PROJECT['requires-python']}").specifier


def test_every_line_is_a_name_and_an_exact_version() -> None:
    assert [line for line in LINES if not re.fullmatch(r"[a-z0-9][a-z0-9-]*==[0-9][\w.]*( ; [\w.* '\"<>=!()-]+)?", line)] == []
    for python in ("3.11.14", "3.12.12", "3.13.9", "3.14.2"):
        chosen = [
            normal(p.name)
            for p in PINS
            if p.marker is None or p.marker.evaluate({"python_full_version": python, "python_version": python[:4]})
        ]
        assert len(chosen) == len(set(chosen))


def test_the_kernel_is_one_that_runs_every_cell_it_is_sent() -> None:
    """ipykernel 7 now and then hears nothing of Run All (its issue 1471: one start in nine here), and 7.3 talks on stderr."""
    (pin,) = [pin for pin in PINS if pin.name == "ipykernel"]
    assert "6.31.0" in pin.specifier


def test_the_pins_are_what_this_environment_has() -> None:
    there = {normal(d.name): d.version for d in importlib.metadata.distributions() if d.name}
    here = {normal(pin.name): str(pin.specifier)[2:] for pin in PINS if pin.marker is None or pin.marker.evaluate()}
    both = sorted(here.keys() & there.keys())
    assert {"numpy", "papermill", "jupyterlab"} & set(both)
    assert {name: there[name] for name in both} == {name: here[name] for name in both}


def test_the_pins_satisfy_what_the_package_asks_for() -> None:
    assert PYTHON is not None
    chosen = pins(f"{PYTHON[1]}.14")
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"], *PROJECT["optional-dependencies"]["test"]]
    for wanted in map(Requirement, asked):
        assert normal(wanted.name) in chosen, wanted
        assert chosen[normal(wanted.name)] in wanted.specifier, wanted


def test_every_import_of_a_notebook_is_pinned_or_ours() -> None:
    belongs, chosen = importlib.metadata.packages_distributions(), {normal(pin.name) for pin in PINS}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if cell["cell_type"] != "code":
                continue
            for node in ast.walk(ast.parse("".join(cell["source"]))):
                names = (
                    [a.name for a in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else []
                )
                for name in (n.split(".")[0] for n in names):
                    assert name in sys.stdlib_module_names or name == "evalkit" or {normal(d) for d in belongs[name]} & chosen, (
                        path.name,
                        name,
                    )


def test_nothing_beside_overrides_the_pins() -> None:
    rivals = {
        "environment.yml",
        "environment.yaml",
        "Pipfile",
        "Pipfile.lock",
        "setup.py",
        "Dockerfile",
        "default.nix",
        "install.R",
        "apt.txt",
    }
    assert {path.name for path in BINDER.iterdir()} == {"requirements.txt", "runtime.txt", "postBuild"}
    assert not (ROOT / ".binder").exists()  # two folders are an error
    assert not rivals & {path.name for path in ROOT.iterdir()}
    lists = [path for path in ROOT.glob("*/**/requirements*.txt") if ".venv" not in path.parts and path.parent != BINDER]
    assert lists  # such as the browser's: it adds packages and changes none
    again = {normal(Requirement(line).name) for path in lists for line in path.read_text("utf-8").splitlines() if re.match(r"\w", line)}
    assert not again & {normal(pin.name) for pin in PINS}


def test_make_and_the_workflow_install_these_pins() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "--requirement binder/requirements.txt" in makefile
    for path in (ROOT / ".github" / "workflows").glob("*.y*ml"):
        assert "pip install" not in path.read_text("utf-8")  # it calls make


def test_post_build_is_a_script_that_installs_the_package() -> None:
    script = BINDER / "postBuild"
    text = script.read_text("utf-8")
    assert text.startswith("#!/bin/bash\n")
    assert "set -e" in text
    assert re.search(r"pip install --no-deps .*--editable \.$", text, re.MULTILINE)
    assert "hatchling" in {pin.name for pin in PINS}  # --no-build-isolation
    if shutil.which("bash"):
        subprocess.run(["bash", "-n", str(script)], check=True)


def test_repo2docker_reads_these_files_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("repo2docker", reason="repo2docker is not installed; make test-browser installs it")
    from repo2docker.app import Repo2Docker

    assert PYTHON is not None
    monkeypatch.chdir(ROOT)
    application = Repo2Docker()
    packs = [pack(application.base_image) for pack in application.buildpacks if pack.__name__ != "LegacyBinderDockerBuildPack"]
    for pack in packs:
        pack.platform = "linux/amd64"
    chosen = next(pack for pack in packs if pack.detect())
    assert type(chosen).__name__ == "PythonBuildPack"
    assert chosen.python_version == PYTHON[1]
    written = chosen.render()
    assert f"environment-2epy-2d{PYTHON[1].replace('.', '-2e')}-2dlinux-2d64-2elock" in written
    assert 'pip install --no-cache-dir -r "binder/requirements.txt"' in written
    assert "RUN ./binder/postBuild" in written
    assert not re.search(r"pip install .*(?<!-r) \.$", written, re.MULTILINE)

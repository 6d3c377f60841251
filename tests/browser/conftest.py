"""A headless Chromium and a JupyterLab on loopback. ``make test-browser`` runs this folder; the default tests leave it out."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "screenshots"


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """These files are collected only where the folder is named."""
    return None if any("browser" in str(argument) for argument in config.args) else True


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.fail("no chromium: install it (Debian: apt-get install chromium fonts-dejavu-core), then run again")
    SCREENSHOTS.mkdir(exist_ok=True)
    flags = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium refuses its sandbox to root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=flags)
        yield browser
        browser.close()


def loopback_only(page: Any) -> list[str]:
    """The requests that want to leave this machine; each is stopped and listed."""
    left: list[str] = []

    def judge(route: Any) -> None:
        if re.match(r"(https?|wss?)://(127\.0\.0\.1|localhost)[:/]|(data|blob|file|about):", route.request.url):
            route.continue_()
        else:
            left.append(route.request.url)
            route.abort()

    page.route("**/*", judge)
    return left


def barriers(page: Any, *places: str) -> list[str]:
    """What axe-core finds serious or critical for a reader with a screen reader, a keyboard or weak eyes."""
    from axe_playwright_python.base import AXE_SCRIPT

    page.evaluate(AXE_SCRIPT)
    found = page.evaluate("places => axe.run(places.length ? {include: places.map(p => [p])} : document)", list(places))
    return [
        f"{rule['id']}: {node['html'][:120]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A JupyterLab with settings of its own, on a copy of the notebooks."""
    home = tmp_path_factory.mktemp("lab")
    notebooks = home / "notebooks"
    shutil.copytree(ROOT / "notebooks", notebooks, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    settings = home / "settings" / "@jupyterlab"
    for name, content in {
        "apputils-extension/notification": {"fetchNews": "false"},
        "notebook-extension/tracker": {"windowingMode": "none"},  # else notebook cells out of sight are not there to look at
    }.items():
        (settings / name).parent.mkdir(parents=True, exist_ok=True)
        (settings / f"{name}.jupyterlab-settings").write_text(json.dumps(content))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    folders = {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    folders |= {"IPYTHONDIR": str(home / "ipython"), "JUPYTERLAB_SETTINGS_DIR": str(home / "settings")}
    folders |= {"JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces")}
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}"]
    command += [f"--ServerApp.root_dir={notebooks}", "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly"]
    log = home / "lab.log"
    with log.open("w") as stream:
        server = subprocess.Popen(command, cwd=home, env={**os.environ, **folders}, stdout=stream, stderr=stream, start_new_session=True)
    try:
        _until_it_answers(f"http://127.0.0.1:{port}/api/status?token={token}", server, log)
        yield SimpleNamespace(url=f"http://127.0.0.1:{port}", token=token, notebooks=notebooks)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=240)


def _until_it_answers(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(960):  # four minutes
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                answer.read()
            return
        except OSError:
            time.sleep(0.25)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")

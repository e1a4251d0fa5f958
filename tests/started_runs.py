"""Processes of `epochcost run` in a tiny project, for tests that disturb them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from crowding import crowded
from heeded_signals import heeded_signals

WAIT_SECONDS = 120
RESULTS = Path("docs/data/results")
# The trials of the tiny project on the CPU.
TRIALS = 3
_PROGRAM = str(Path(sys.executable).with_name("epochcost"))
_RUN = (_PROGRAM, "run", "--no-ceilings", "--provider", "cpu")


def environment(project: Path, **more: str) -> dict[str, str]:
    """Environment variables: temporary files in the test's folder, and a wide terminal."""
    temporary = project.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    return os.environ | {"TMPDIR": str(temporary), "COLUMNS": "200"} | more


def run(
    project: Path, *arguments: str, errors: int = subprocess.PIPE, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run `epochcost run` on the CPU to its end; ``errors`` is its standard error."""
    return subprocess.run(
        [*_RUN, *arguments],
        cwd=project,
        env=environment(project, **more),
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        check=False,
        timeout=crowded(WAIT_SECONDS),
    )


@contextlib.contextmanager
def started_run(project: Path, *arguments: str, until: str) -> Iterator[subprocess.Popen[str]]:
    """Start a run, and wait until a line of its progress contains ``until``; kill it at the end."""
    with heeded_signals():
        process = subprocess.Popen(
            [*_RUN, *arguments],
            cwd=project,
            env=environment(project),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        assert process.stderr is not None
        while until not in process.stderr.readline():
            assert process.poll() is None
        yield process
    finally:
        process.kill()
        process.communicate()


def worker_of(process: subprocess.Popen[str]) -> psutil.Process:
    """Wait for the worker of the current trial."""
    while True:
        assert process.poll() is None
        for child in psutil.Process(process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if "epochcost.measure.worker" in child.cmdline():
                    return child


def run_script(project: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in its own mount namespace; ``$0`` is the program."""
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if (
        shutil.which("unshare") is None
        or subprocess.run(probe, capture_output=True, check=False).returncode
    ):
        pytest.skip("no mount namespaces here; tests/results/test_files.py covers the write")
    return subprocess.run(
        ["unshare", "-rm", "bash", "-c", text, _PROGRAM],
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        check=False,
        timeout=crowded(2 * WAIT_SECONDS),
    )

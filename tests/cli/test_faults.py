"""External faults of `epochcost run`: signals, full memory or disk, a jumping clock.

The table in docs/reference/faults.md names these tests.
"""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from crowding import crowded
from sound_results import sound_results
from started_runs import (
    RESULTS,
    TRIALS,
    WAIT_SECONDS,
    environment,
    run,
    run_script,
    started_run,
    worker_of,
)
from tiny_project import write_tiny_project

# Seconds between a spot machine's notice and its end.
NOTICE_SECONDS = 30


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path) -> Path:
    """A tiny project."""
    return write_tiny_project(tmp_path / "project")


def rounds_stored(project: Path) -> list[int]:
    """The number of rounds of each stored result, sorted."""
    stored = sound_results(project / RESULTS)
    return sorted(len(result.measurement.samples_by_round) for result in stored)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_end_between_rounds_keeps_the_rounds_before(
    project: Path, number: signal.Signals
) -> None:
    """A run ended in round 2 keeps all first rounds; --resume measures the missing rounds."""
    with started_run(project, "--rounds", "2", until="[5/6]") as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=crowded(NOTICE_SECONDS))
    stored = rounds_stored(project)
    assert stored in ([1, 1, 2], [1, 2, 2])  # the fifth may have ended before the signal came
    whole = stored.count(2)
    message = f"{whole} of 3 trials are stored, {3 - whole} more in some of their rounds"
    if number == signal.SIGTERM:
        assert process.returncode == 130, errors
        assert message in errors
        assert "add --resume to continue" in errors
    resumed = run(project, "--rounds", "2", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "[3/3]" in resumed.stderr
    assert resumed.stderr.count("stored before") == whole
    assert rounds_stored(project) == [2, 2, 2]


@pytest.mark.slow
def test_a_lost_connection_keeps_what_is_finished(project: Path) -> None:
    """SIGHUP acts like Ctrl-C, and the worker ends within 30 s."""
    with started_run(project, until="[2/3]") as process:
        worker = worker_of(process)
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=crowded(NOTICE_SECONDS))
    assert process.returncode == 130
    assert "interrupted: 1 of 3 trials are stored" in errors
    assert psutil.wait_procs([worker], timeout=crowded(NOTICE_SECONDS))[1] == []
    assert rounds_stored(project) == [1]


@pytest.mark.slow
def test_a_second_runner_is_refused_and_the_first_goes_on(project: Path) -> None:
    """Of two runs on one results folder the later ends at once; the earlier succeeds."""
    # Longer than the second takes to start on any machine.
    with started_run(project, "--rounds", "3", until="[1/9]") as first:
        second = run(project)
        assert second.returncode == 3
        assert "another run is in progress" in second.stderr
        _, errors = first.communicate(timeout=crowded(WAIT_SECONDS))
    assert first.returncode == 0, errors
    assert rounds_stored(project) == [3] * TRIALS


@pytest.mark.slow
def test_a_worker_without_memory_fails_its_trial_alone(project: Path) -> None:
    """A worker out of memory fails its trial with a message; the other trials are stored."""
    with started_run(project, until="[2/3]") as process:
        resource.prlimit(worker_of(process).pid, resource.RLIMIT_AS, (2**26, 2**26))
        _, errors = process.communicate(timeout=crowded(WAIT_SECONDS))
    assert process.returncode in (1, 3)
    assert "1 of 3 trials failed:" in errors
    assert "Traceback (most recent call last)" not in errors.split("trials failed:")[0]
    assert rounds_stored(project) == [1] * (TRIALS - 1)
    assert run(project, "--resume").returncode == 0
    assert rounds_stored(project) == [1] * TRIALS


_READ_ONLY = """
set -u
mkdir -p docs/data/results && mount -t tmpfs -o size=16m tmpfs docs/data/results || exit 77
"$0" run --no-ceilings --provider cpu || exit 78
ls docs/data/results/local > ../before
mount -o remount,ro docs/data/results
"$0" run --no-ceilings --provider cpu
echo "read-only: $?"
ls docs/data/results/local | diff - ../before && echo kept
mount -o remount,rw docs/data/results
"$0" run --no-ceilings --provider cpu --resume
echo "writable: $?"
"""


@pytest.mark.slow
def test_a_read_only_folder_is_said_before_anything_is_measured(project: Path) -> None:
    """A read-only results folder gives exit code 3 with a remedy; earlier results stay."""
    process = run_script(project, _READ_ONLY)
    assert "read-only: 3" in process.stdout, process.stderr
    assert "change the folder's rights (--results names another folder)" in process.stderr
    assert "kept" in process.stdout
    assert "writable: 0" in process.stdout
    assert process.stderr.count("stored before") == TRIALS


_FULL_SCRATCH = """
set -u
mkdir -p ../small && mount -t tmpfs -o size=8k tmpfs ../small || exit 77
TMPDIR=$PWD/../small "$0" run --no-ceilings --provider cpu
echo "full: $?"
mount -o remount,size=80k ../small
TMPDIR=$PWD/../small "$0" run --no-ceilings --provider cpu
echo "full: $?"
"$0" run --no-ceilings --provider cpu --resume
echo "elsewhere: $?"
"""


@pytest.mark.slow
def test_a_full_temporary_folder_fails_the_trials_in_words(project: Path) -> None:
    """The failures name TMPDIR; with another temporary folder all trials are measured."""
    process = run_script(project, _FULL_SCRATCH)
    assert process.stdout.count("full: 3") == 2, process.stderr
    failures = process.stderr.split("trials failed:")
    assert all("another place with TMPDIR" in each for each in failures[1:])
    assert "--results" not in process.stderr
    assert "Traceback" not in process.stderr
    assert "elsewhere: 0" in process.stdout
    assert rounds_stored(project) == [1] * TRIALS


@pytest.mark.slow
def test_a_full_disk_under_the_log_costs_no_trial(project: Path) -> None:
    """A run whose progress cannot be written continues."""
    with Path("/dev/full").open("w") as full:
        process = run(project, errors=full.fileno())
    assert "3 of 3 results are in" in process.stdout
    assert rounds_stored(project) == [1] * TRIALS


# The wall clock alternates between a day and a half behind and ahead.
_JUMPING_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  static int looks;
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(id, now);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
    now->tv_sec += (looks++ % 2 ? 1 : -1) * 129600;
  return failed;
}
"""


@pytest.mark.slow
def test_a_wall_clock_that_jumps_changes_no_time(project: Path) -> None:
    """Steps are timed by the monotonic clock, so a jumping wall clock changes no sample."""
    compiler = shutil.which("cc") or pytest.skip("no C compiler for the library that moves clocks")
    source, library = project.parent / "jump.c", project.parent / "jump.so"
    source.write_text(_JUMPING_CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    looked = "import time; a, b = time.time(), time.time(); print(abs(a - b) > 86400)"
    probe = subprocess.run(
        [sys.executable, "-c", looked],
        env=environment(project, LD_PRELOAD=str(library)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert probe.stdout == "True\n", "the library does not move the clock"
    done = run(project, "--rounds", "2", LD_PRELOAD=str(library))
    assert done.returncode == 0, done.stderr
    for result in sound_results(project / RESULTS):
        measured = result.measurement
        assert max(measured.samples_seconds) < measured.wall_seconds < WAIT_SECONDS
        assert len(measured.rounds) == 2

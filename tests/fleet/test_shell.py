"""Scripts and copies on this machine, and the errors of an ssh that prints what real ones print."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from epochcost.fleet.shell import EngineError, Shell
from remote_homes import NEEDS_RSYNC

BOX = Shell("box", "gpu-box")
_CHANGED_KEY = """\
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
Host key for gpu-box has changed and you have requested strict checking.
Host key verification failed.
"""
# What ssh or a program there prints, its exit code, and the error: a part of it, and if it passes.
FAILURES = (
    (_CHANGED_KEY, 255, "its host key differs from the key in known_hosts", False),
    ("Host key verification failed.\n", 255, "run `ssh gpu-box` once", False),
    ("alice@gpu-box: Permission denied (publickey).\n", 255, "it refuses the key", False),
    (
        "ssh: Could not resolve hostname gpu-box: Name or service not known\n",
        255,
        "cannot be reached (Could not resolve hostname gpu-box: Name or service not known)",
        True,
    ),
    (
        "ssh: connect to host gpu-box port 22: Connection timed out\n",
        255,
        "cannot be reached (connect to host gpu-box port 22: Connection timed out)",
        True,
    ),
    ("Connection to gpu-box closed by remote host.\n", 255, "the connection was lost", True),
    ("ERROR: [Errno 28] No space left on device\n", 1, "its disk is full", False),
    ("cat: write error: Disk quota exceeded\n", 1, "its disk is full", False),
    (
        "sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
        "sbatch: error: fetch_config: DNS SRV lookup failed\n",
        1,
        "Slurm does not answer (DNS SRV lookup failed): does `sinfo` work there?",
        True,
    ),
    (
        "rsync: no such file\nrsync error: some files (code 23) at main.c\n",
        23,
        "no such file",
        False,
    ),
    ("a\nERROR: No matching distribution for numpy\n\n", 1, "ERROR: No matching", False),
    ("\x1b[31mred\x07\x1b[0m\n", 1, r": red\x07", False),
    ("", 7, "exit code 7", False),
)


@pytest.mark.parametrize(("message", "status", "sentence", "passing"), FAILURES)
def test_a_failure_has_one_line_with_the_remedy(
    message: str,
    status: int,
    sentence: str,
    passing: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of ssh's many lines remains, except an unknown reason."""
    (tmp_path / "message").write_text(message)
    program = tmp_path / "ssh"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/message >&2\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(EngineError) as failure:
        BOX.run("true")
    assert str(failure.value).startswith("target box (gpu-box): ")
    assert sentence in str(failure.value)
    assert "\n" not in str(failure.value)
    assert failure.value.passing is passing


def test_a_failure_of_a_program_here_does_not_blame_ssh() -> None:
    """SkyPilot's lost connection is temporary, but no matter of `ssh`."""
    with pytest.raises(EngineError) as failure:
        Shell("box", None).call(("sh", "-c", "echo 'api: Connection refused' >&2; exit 1"))
    assert str(failure.value) == "target box: api: Connection refused"
    assert failure.value.passing


def test_a_missing_ssh_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is to be installed here."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="expected the program ssh here: install it"):
        BOX.run("true")


def test_a_slow_script_ends_with_an_error() -> None:
    """The same call may succeed later."""
    with pytest.raises(EngineError, match="no answer within 1 s") as slow:
        Shell("box", None).run("sleep 30", seconds=1)
    assert slow.value.passing


def test_a_script_runs_in_the_home_after_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a profile prints is no output, and programs there cannot read the script."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".profile").write_text("echo welcome\ncd /\n")
    assert Shell("box", None).run("cat; pwd; echo done") == f"{tmp_path}\ndone\n"


@NEEDS_RSYNC
def test_a_copy_keeps_the_temporary_files_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two copies at once, as after a lost connection, do not break each other."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "specs/prices").mkdir(parents=True)
    temporary = tmp_path / "cells/specs/prices/.own.toml.TUChuK"
    temporary.parent.mkdir(parents=True)
    temporary.write_text("half")
    Shell("box", None).send([tmp_path / "specs"], "cells")
    assert temporary.exists()


@NEEDS_RSYNC
def test_copies_replace_folders_there_and_files_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links are followed; results come without other files, and newer ones replace earlier ones."""
    monkeypatch.setenv("HOME", str(tmp_path / "home of alice"))
    there = tmp_path / "home of alice/our cells"
    (there / "specs").mkdir(parents=True)
    (there / "specs/stale.json").write_text("stale")
    source = tmp_path / "specs"
    source.mkdir()
    (tmp_path / "elsewhere").write_text("linked")
    (source / "a b.json").symlink_to(tmp_path / "elsewhere")
    (source / ".half.json.partial").write_text("half")
    (source / "c.json").write_text("there")
    shell = Shell("box", None)
    monkeypatch.chdir(tmp_path)
    shell.send([Path("specs")], "our cells")
    assert not (there / "specs/stale.json").exists()
    assert (there / "specs/a b.json").read_text() == "linked"
    here = tmp_path / "here"
    here.mkdir()
    (here / "c.json").write_text("earlier")
    (here / "d.json").write_text("here alone")
    shell.fetch("our cells/specs", Path("here"))
    assert {path.name: path.read_text() for path in here.iterdir()} == {
        "a b.json": "linked",
        "c.json": "there",
        "d.json": "here alone",
    }

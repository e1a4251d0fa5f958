"""Files are written completely or not at all, even without space or rights."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError
from epochcost.results.files import (
    exclusive_lock,
    remove_leftovers,
    require_writable,
    storage_error,
    unwritable,
    write_atomically,
)

# A file larger than the limit fails as on a full disk, in a child so that only it is limited.
_LIMITED = """
import resource, sys
from pathlib import Path
from epochcost.errors import CapabilityError
from epochcost.results.files import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(Path(sys.argv[1]), b"new" * 1000)
except CapabilityError as error:
    print(error)
"""


_ENDLESS_REWRITES = """
import sys
from pathlib import Path
from epochcost.results.files import write_atomically
for turn in range(10**9):
    write_atomically(Path(sys.argv[1]), bytes([turn % 256]) * 200_000)
    print(flush=True)
"""


_NOBODY = 65_534


def test_the_new_bytes_replace_the_old(tmp_path: Path) -> None:
    """After a write the folder has only the new file."""
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_no_room_keeps_the_old_file_and_says_what_to_do(tmp_path: Path) -> None:
    """A write without enough space keeps the old file and leaves no temporary file."""
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    child = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(path)], capture_output=True, text=True, check=True
    )
    assert "free some space" in child.stdout
    assert "--resume" in child.stdout
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_file_system_is_a_capability_error() -> None:
    """The error for a full disk says to free space."""
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(OSError, match="No space") as caught,
    ):
        full.write(b"x")
    assert "free some space" in str(storage_error(Path("results"), caught.value))


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "got No space left on device: free some space there"),
        (errno.EROFS, "got Read-only file system: change the folder's rights"),
        (errno.ENOENT, "got No such file or directory: make this folder, or name another"),
    ],
)
def test_a_file_that_is_no_result(number: int, remedy: str) -> None:
    """The error for a file of a command without --results names a remedy without that option."""
    error = unwritable(Path("models"), OSError(number, os.strerror(number)))
    assert str(error) == f"models: expected a folder that takes a new file, {remedy}"


def test_a_folder_without_write_right_is_named(tmp_path: Path) -> None:
    """The message says which right is missing, and names the option for another folder."""
    tmp_path.chmod(0o500)
    message = _message_without_root(tmp_path)
    assert "change the folder's rights" in message
    assert "--results" in message


def _message_without_root(folder: Path) -> str:
    """The message of ``require_writable`` in a process without root's rights."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(_NOBODY)
            require_writable(folder)
        except CapabilityError as error:
            os.write(write_end, str(error).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        message = answer.read()
    os.waitpid(child, 0)
    return message


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    """Only temporary files are removed, also those of sidecars, and results are kept."""
    (tmp_path / ".a.json.1.partial").write_text("half")
    (tmp_path / "limits").mkdir()
    (tmp_path / "limits/.b.json.1.partial").write_text("half")
    (tmp_path / "a.json").write_text("whole")
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.json", "limits"]


def test_a_killed_writer_never_leaves_half_a_file(tmp_path: Path) -> None:
    """After a kill at any moment the file has one complete version."""
    path = tmp_path / "a.json"
    for _ in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", _ENDLESS_REWRITES, str(path)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        for _line in range(3):
            child.stdout.readline()
        child.kill()
        child.wait()
        child.stdout.close()
        data = path.read_bytes()
        assert len(data) == 200_000
        assert len(set(data)) == 1


_HOLDER = """
import sys, time
from pathlib import Path
from epochcost.results.files import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_dies(tmp_path: Path) -> None:
    """The lock refuses a second process until its holder has ended, even by a kill."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with (
        pytest.raises(CapabilityError, match="another run is in progress"),
        exclusive_lock(tmp_path),
    ):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with exclusive_lock(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_two_threads_may_write_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither write fails, as when two machines of a launch send the same record."""
    path, sync, writers = tmp_path / "file", os.fsync, list[threading.Thread]()

    def sync_late(descriptor: int) -> None:
        sync(descriptor)
        if not writers:
            writers.append(threading.Thread(target=write_atomically, args=(path, b"second")))
            writers[0].start()
            writers[0].join()

    monkeypatch.setattr(os, "fsync", sync_late)
    write_atomically(path, b"first")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]

"""One writer at a time, and a dead one holds nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError
from epochcost.results.files import exclusive_lock

_HOLDER = """
import sys, time
from pathlib import Path
from epochcost.results.files import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_dies(tmp_path: Path) -> None:
    """The lock names the folder and the way out, and is gone with its holder, however it died."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(CapabilityError, match="another one in progress"), exclusive_lock(tmp_path):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with exclusive_lock(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_the_lock_is_released_after_use(tmp_path: Path) -> None:
    """Two runs one after the other do not meet."""
    for _ in range(2):
        with exclusive_lock(tmp_path):
            pass

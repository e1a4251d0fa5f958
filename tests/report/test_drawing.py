"""Charts drawn in separate processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from crowding import crowded
from epochcost.report.charts.drawing import Drawer
from report_charts import CHARTS

_WAIT_SECONDS = 60
# A process that starts drawing, prints the ids of its helpers, and waits.
_WAITING = """
import sys, time
from pathlib import Path
from epochcost.report.charts.drawing import Drawer
if __name__ == "__main__":
    drawer = Drawer(Path(sys.argv[1]))
    drawer.begin(())
    drawer.library()
    print("begun", flush=True)
    time.sleep(600)
"""


def test_no_process_is_left_when_all_is_drawn(tmp_path: Path) -> None:
    """All drawings are complete, and no process remains."""
    before = set(psutil.Process().children())
    drawer = Drawer(tmp_path / "drawings")
    drawer.begin([CHARTS["cost_time"]])
    assert drawer.draw(CHARTS["cost_time"]).svg.startswith("<svg")
    assert b"vegaEmbed" in drawer.library()
    begun = set(psutil.Process().children()) - before
    assert [process for process in begun if "spawn_main" in str(process.cmdline())]
    drawer.close()
    remaining = set(psutil.Process().children()) - before
    assert not [process for process in remaining if "spawn_main" in str(process.cmdline())]
    assert {path.suffix for path in drawer.folder.iterdir()} == {".js", ".json"}


def test_what_is_drawn_is_not_drawn_again(tmp_path: Path) -> None:
    """A later build reads them without processes; unused ones are dropped."""
    first = Drawer(tmp_path)
    drawn = [first.draw(CHARTS[name]) for name in list(CHARTS)[:2]]
    first.close()
    later = Drawer(tmp_path)
    assert later.draw(CHARTS[next(iter(CHARTS))]) == drawn[0]
    assert "_pool" not in later.__dict__
    later.tidy()
    assert len(list(tmp_path.iterdir())) == 1


def test_processes_end_with_the_one_that_began_them(tmp_path: Path) -> None:
    """Even after kill -9 of the parent."""
    script = tmp_path / "waiting.py"
    script.write_text(_WAITING, encoding="utf-8")
    begun = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "drawings")], stdout=subprocess.PIPE
    )
    with begun:
        assert begun.stdout is not None
        assert begun.stdout.readline() == b"begun\n"
        children = psutil.Process(begun.pid).children(recursive=True)
        assert children
        os.kill(begun.pid, signal.SIGKILL)
    assert psutil.wait_procs(children, timeout=crowded(_WAIT_SECONDS))[1] == []

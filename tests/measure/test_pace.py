"""The machine's pace: real readings between samples, in their share of the time."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from epochcost.measure.pace import MOST_SHARE, PaceReader, bound_run, waited_seconds
from epochcost.plan.trial import SessionSettings


class Machine:
    """A clock that moves by a millisecond whenever it is read, and by what steps take."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Tell the time."""
        self.now += 0.001
        return self.now


def test_readings_take_their_share_of_the_time() -> None:
    """They come as often as their share of the time allows, the first before the first step."""
    clock = Machine()
    reader = PaceReader(SessionSettings(threads=1), clock)
    reader.begin()
    begun = clock.now
    for _ in range(100):
        reader.before_step()
        clock.now += 0.05
    pace = reader.pace()
    assert pace is not None
    assert pace.after_samples[0] == 0
    assert max(pace.after_samples) < 100
    spent = 0.003 * len(pace.after_samples)
    assert spent / (clock.now - begun) <= MOST_SHARE + 0.003 / (clock.now - begun)
    assert spent / (clock.now - begun) > MOST_SHARE / 2


def test_what_was_read_before_the_samples_does_not_count() -> None:
    """Readings begin anew with the samples."""
    reader = PaceReader(SessionSettings(threads=1), Machine())
    reader.before_step()
    reader.begin()
    assert reader.pace() is None


def test_the_works_are_what_they_say() -> None:
    """A product is one and a copy writes where it was asked to, in place of what was there."""
    one = np.arange(4, dtype=np.float32).reshape(2, 2)
    product, negative = np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32)
    bound_run("MatMul", [one, one], product, SessionSettings(threads=1))()
    bound_run("Neg", [one], negative, SessionSettings(threads=1))()
    assert product.tolist() == (one @ one).tolist()
    assert negative.tolist() == (-one).tolist()


def test_waiting_for_a_cpu_is_counted() -> None:
    """Two threads that work on one CPU wait for each other; the kernel says for how long."""
    if not Path("/proc/self/schedstat").is_file():
        pytest.skip("this kernel counts no waiting")
    allowed = os.sched_getaffinity(0)
    before, ended = waited_seconds(), time.monotonic() + 0.5

    def work() -> None:
        os.sched_setaffinity(0, {min(allowed)})
        block = np.ones((400, 400))
        while time.monotonic() < ended:
            np.multiply(block, block, out=block)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    waited = waited_seconds() - before
    for thread in threads:
        thread.join()
    assert waited > 0


def test_a_system_that_counts_no_waiting_has_none(tmp_path: Path) -> None:
    """Where the kernel gives no such file, what was waited is 0, and a broken one is nothing."""
    assert waited_seconds(tmp_path) == 0
    (tmp_path / "1").mkdir()
    (tmp_path / "1/schedstat").write_text("")
    assert waited_seconds(tmp_path) == 0
    (tmp_path / "1/schedstat").write_text("123 2000000000 7\n")
    assert waited_seconds(tmp_path) == 2

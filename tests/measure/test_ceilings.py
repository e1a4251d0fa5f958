"""What the machine at hand does at most, by the kernels that trials run on."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from epochcost.errors import CapabilityError
from epochcost.measure.ceilings import TIMES, measure_apart, measure_ceiling, one_node
from epochcost.measure.session import open_session


def test_both_works_are_timed_to_the_bytes_asked_for() -> None:
    """Positive rates, as many times as it says, after one pass that does not count."""
    found = measure_ceiling(1, 64, 2**16)
    assert (found.threads, found.matrix_side, found.copied_bytes) == (1, 64, 2**16)
    assert len(found.product_seconds) == len(found.copy_seconds) == TIMES
    assert 0 < found.flops.low <= found.flops.median <= found.flops.high


def test_the_work_is_what_it_is_called() -> None:
    """A product of matrices, and as many bytes written as read."""
    one, other = (np.arange(4, dtype=np.float32).reshape(2, 2) + add for add in (0, 5))
    product = open_session(one_node("MatMul", 2, (2, 2)), "cpu").run(None, {"x0": one, "x1": other})
    np.testing.assert_array_equal(product[0], one @ other)
    (copied,) = open_session(one_node("Neg", 1, (2, 2)), "cpu").run(None, {"x0": one})
    np.testing.assert_array_equal(copied, -one)


def test_a_process_of_its_own_measures() -> None:
    """The very command, on a little work."""
    (found,) = measure_apart(2**16, [1], 64)
    assert (found.threads, found.matrix_side) == (1, 64)


def test_the_last_words_of_a_process_that_fails_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that is not there ends the process, and no run."""
    command = [sys.executable, "-c", "raise SystemExit('no memory')"]
    monkeypatch.setattr("epochcost.measure.start.module_command", lambda *_: command)
    with pytest.raises(CapabilityError, match="got status 1: no memory"):
        measure_apart(2**16, [1])

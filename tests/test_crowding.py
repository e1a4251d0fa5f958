"""The time limit of a test grows with the machine's load."""

from __future__ import annotations

import os

import pytest

from crowding import crowded


@pytest.mark.parametrize(("load", "factor"), [(0.0, 1.0), (2.0, 1.0), (8.0, 4.0)])
def test_a_limit_grows_with_the_programs_that_share_a_cpu(
    load: float, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one program per CPU the limit stays, and with four programs it is four times as long."""
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert crowded(10) == 10 * factor

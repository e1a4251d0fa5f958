"""Time limits for tests on a machine that other programs use too."""

from __future__ import annotations

import os


def crowded(seconds: float) -> float:
    """A limit that is ``seconds`` on an idle machine, times the programs that share each CPU."""
    programs_per_cpu = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * max(1.0, programs_per_cpu)

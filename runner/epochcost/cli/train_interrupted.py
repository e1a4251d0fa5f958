"""What `epochcost train --simulate-interruptions` says: what kills took, and what was expected.

The kills are left to `execute.interruptions`, what is expected of a spot machine to `cost.spot`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from epochcost.cli.terminal import print_table, say
from epochcost.errors import UsageError
from epochcost.execute.interruptions import InterruptedTraining, random_ends, run_interrupted
from epochcost.execute.training import PreparedTraining
from epochcost.units import SECONDS_PER_HOUR, seconds


def train_interrupted(
    prepared: PreparedTraining, seed: int, folder: Path, per_hour: float
) -> InterruptedTraining:
    """Begin anew in a folder of its own; raises UsageError where a start could never save."""
    if prepared.request.save_seconds > 3 * SECONDS_PER_HOUR / per_hour:
        raise UsageError(
            "--simulate-interruptions: expected --save-seconds to be at most three times what is "
            f"between interruptions, {seconds(SECONDS_PER_HOUR / per_hour)}, got "
            f"{prepared.request.save_seconds:g}"
        )
    shutil.rmtree(folder, ignore_errors=True)
    return run_interrupted(prepared, seed, folder, random_ends(per_hour, seed))


def show_interrupted(
    found: InterruptedTraining, per_hour: float, cost: Callable[[float], str]
) -> None:
    """Measured and expected side by side; ``cost`` says what so many seconds cost."""
    expected = found.expected(per_hour)
    rows = [
        ("interruptions", f"{found.interruptions}", f"{float(expected.interruptions):.1f}"),
        ("work", seconds(found.work_seconds), seconds(float(expected.work))),
        ("lost and done again", seconds(found.rework_seconds), seconds(float(expected.rework))),
        ("starts", seconds(found.starting_seconds), seconds(float(expected.starting))),
        ("on a machine", seconds(found.running_seconds), seconds(float(expected.running))),
        ("cost", cost(found.running_seconds), cost(float(expected.running))),
    ]
    print_table(("", "measured", "expected"), rows)
    say(
        f"Expected at {per_hour:g} interruptions an hour, of the measured work, starts of "
        f"{seconds(found.start_seconds)} and saves of {seconds(found.save_seconds)} after every "
        f"{seconds(found.interval_seconds)}; weights {found.repeat.weights_sha256[:12]}"
    )


def interrupted_as_json(found: InterruptedTraining, per_hour: float) -> dict[str, Any]:
    """The same, and every start."""
    expected = found.expected(per_hour)
    return {
        "interruptions_per_hour": per_hour,
        "measured": {
            "interruptions": found.interruptions,
            "work_seconds": found.work_seconds,
            "rework_seconds": found.rework_seconds,
            "starting_seconds": found.starting_seconds,
            "running_seconds": found.running_seconds,
        },
        "expected": {
            "interruptions": float(expected.interruptions),
            "rework_seconds": float(expected.rework),
            "starting_seconds": float(expected.starting),
            "running_seconds": float(expected.running),
        },
        "starts": found.starts,
        "weights_sha256": found.repeat.weights_sha256,
    }

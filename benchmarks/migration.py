"""Savings of moving between zones over the best single zone, on synthetic price traces.

    python benchmarks/migration.py [--seeds 5]

DeepSpotCloud (IEEE CLOUD 2017) made this comparison with price logs that are not public. Here
prices drift and jump in each zone independently. One assumption after another is changed, to show
on which assumptions the savings depend. Savings are means over the seeds; "to" is the range of
eight of ten starts.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from epochcost.cost.market import Market
from epochcost.cost.replay import MovingJob, compare_policies, saving_interval
from epochcost.units import SECONDS_PER_HOUR
from made_traces import made_trace

_DAYS, _STARTS, _SAVE_SECONDS, _RESTART_SECONDS = 90, 1000, 2.0, 300.0


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions about a job of some hours, and about the market of its zones."""

    zones: int = 6
    hours: int = 24
    spread: float = 0.35
    taken_per_hour: float = 0.05
    move_seconds: float = 10.0
    move_charge: float = 0.02


_USUAL = Assumptions()
CASES = {
    "six zones, a day of work": _USUAL,
    "prices hardly wander": replace(_USUAL, spread=0.05),
    "never taken back": replace(_USUAL, taken_per_hour=0.0),
    "taken back every 5 h": replace(_USUAL, taken_per_hour=0.2),
    "a move: $2 and 30 min": replace(_USUAL, move_charge=2.0, move_seconds=1800.0),
    "two zones": replace(_USUAL, zones=2),
    "three days of work": replace(_USUAL, hours=72),
}


def gains(case: Assumptions, seed: int) -> list[tuple[float, float, float]]:
    """Savings of each way to move: of the mean cost, then of low and high single starts."""
    trace = made_trace(
        case.zones, _DAYS, seed, spread=case.spread, taken_per_hour=case.taken_per_hour
    )
    market, work = Market(trace), case.hours * SECONDS_PER_HOUR
    interval = saving_interval(market, _SAVE_SECONDS)
    moves = case.move_seconds, case.move_charge
    job = MovingJob(work, interval, _SAVE_SECONDS, _RESTART_SECONDS, *moves)
    stay, *moving = compare_policies(market, job, _STARTS)
    return [
        (1 - policy.cost.mean / stay.cost.mean, policy.saved.p10, policy.saved.p90)
        for policy in moving
    ]


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    print("| assumptions | move when interrupted | move when it pays, too |\n| --- | --- | --- |")
    for name, case in CASES.items():
        percent = np.mean([gains(case, seed) for seed in range(seeds)], axis=0) * 100
        cells = [f"{mean:.0f} %, {low:.0f} to {high:.0f} %" for mean, low, high in percent]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

"""How long 10,000 starts take under four policies, over a year of five-minute prices in 12 zones.

    python benchmarks/replay.py [--starts 10000] [--days 365] [--zones 12] [--hours 24]

The trace is made from a seed. Seconds are of the CPU; the memory is the whole process's at most.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from epochcost.cost.market import Market
from epochcost.cost.policies import saving_interval
from epochcost.cost.replay import POLICIES, MovingJob, evenly_spaced_starts, replay
from epochcost.units import SECONDS_PER_HOUR
from made_traces import made_trace


def main() -> None:
    """Play all and print a line for each policy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--starts", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--zones", type=int, default=12)
    parser.add_argument("--hours", type=float, default=24.0)
    asked = parser.parse_args()
    trace = made_trace(asked.zones, asked.days, seed=1)
    begin = time.process_time()
    market = Market(trace)
    work = asked.hours * SECONDS_PER_HOUR
    job = MovingJob(
        work_seconds=work,
        interval_seconds=saving_interval(market, 10.0),
        save_seconds=10.0,
        restart_seconds=300.0,
        move_seconds=60.0,
        move_charge=0.2,
        on_demand_per_hour=3.0,
        deadline_seconds=1.5 * work,
    )
    starts = evenly_spaced_starts(market, job, asked.starts)
    print(f"market: {time.process_time() - begin:.2f} s; a save every {job.interval_seconds:.0f} s")
    for policy in POLICIES:
        since = time.process_time()
        got = replay(market, job, policy, starts)
        ended = got.finished
        print(
            f"{policy:9} {time.process_time() - since:.2f} s: {ended.mean():.2%} end, "
            f"${got.cost[ended].mean():.2f}, {got.elapsed[ended].mean() / SECONDS_PER_HOUR:.1f} h"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"all: {time.process_time() - begin:.1f} s of the CPU, {peak:.0f} MiB")


if __name__ == "__main__":
    main()

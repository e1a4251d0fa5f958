"""Traces of spot machines that are drawn by a seed: no machine ever had these prices.

    python tests/made_traces.py > specs/replays/made-three-zones.csv

writes the trace that the documentation replays. Each zone's price wanders around the same mean,
independently of other zones. At random it jumps to three times the price for some hours, and at
random the zone takes its machines back for a while. DeepSpotCloud (IEEE CLOUD 2017) describes such
spot prices: dynamic, and in zones that do not move together.
"""

from __future__ import annotations

import datetime as dt
import math
import sys

import numpy as np

from epochcost.specs.prices.traces import Floats, Trace, ZoneTrace

BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def made_trace(
    zones: int,
    days: int,
    seed: int,
    *,
    step_seconds: float = 300.0,
    spread: float = 0.35,
    taken_per_hour: float = 0.05,
) -> Trace:
    """A trace of these zones for these days, with a row at every step.

    ``spread`` is the standard deviation of the price's logarithm between jumps.
    """
    rng, count = np.random.default_rng(seed), int(days * 86_400 / step_seconds)
    times = BEGIN.timestamp() + np.arange(count) * step_seconds
    hours = step_seconds / 3600
    zones_by_name = {}
    for number in range(zones):
        prices = np.exp(_wandering(rng, count, hours / 24, spread))
        prices *= np.where(_on_and_off(rng, count, hours * 0.02, hours / 4), 3.0, 1.0)
        taken = _on_and_off(rng, count, hours * taken_per_hour, hours / 1)
        held = np.where(taken, math.nan, np.round(prices, 4))
        zones_by_name[f"made-{chr(97 + number)}"] = ZoneTrace(times, held)
    return Trace(zones_by_name, "USD", times[0], times[-1] + step_seconds)


def _wandering(rng: np.random.Generator, count: int, back: float, spread: float) -> Floats:
    """A random walk that goes back towards zero by the share ``back`` in each step."""
    moves = rng.normal(0.0, spread * math.sqrt(2 * back), count)
    walk, now = np.empty(count), rng.normal(0.0, spread)
    for step in range(count):
        now += moves[step] - back * now
        walk[step] = now
    return walk


def _on_and_off(rng: np.random.Generator, count: int, begins: float, ends: float) -> np.ndarray:
    """Spells that begin and end with these chances in each step."""
    chances, spell, now = rng.random(count), np.empty(count, np.bool_), False
    for step in range(count):
        now = chances[step] >= ends if now else chances[step] < begins
        spell[step] = now
    return spell


def main() -> None:
    """Print three zones for two weeks, hour by hour."""
    trace = made_trace(3, 14, seed=7, step_seconds=3600.0)
    out = sys.stdout.write
    out("time,zone,price,currency,available\n")
    for row, time in enumerate(trace.zones["made-a"].times):
        at = f"{dt.datetime.fromtimestamp(time, dt.UTC):%Y-%m-%dT%H:%MZ}"
        for zone, rows in trace.zones.items():
            price = rows.prices[row]
            out(
                f"{at},{zone},,USD,0\n" if math.isnan(price) else f"{at},{zone},{price:.4f},USD,1\n"
            )


if __name__ == "__main__":
    main()

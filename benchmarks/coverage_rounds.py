"""How often the interval of some rounds contains the mean of a result's other rounds.

    python benchmarks/coverage_rounds.py [--rounds 3 4 5 6] [--draws 10]

Uses each result in ``docs/data/results`` with at least twice as many rounds and three more than are
drawn. Some rounds are drawn at random, many times, and their interval is compared with the mean of
the other rounds. The mean of the other rounds has an error too: the mean of n rounds is sqrt(1 +
k/n) times as far from the mean of k rounds as from the long-run mean. Prints the share of intervals
that contain the other rounds' mean, the share that contain a mean without that error, the median
half width, and the distance between drawn rounds and other rounds. Nothing is measured, so the
answer is the same on every machine.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from wilson import wilson_interval

from epochcost.results.records import Measurement
from epochcost.results.store import load_all
from epochcost.statistics.summary import Summary, summarise

ROOT = Path(__file__).parents[1]
_SEED = 20261125


@dataclass
class _Held:
    """Comparisons of drawn rounds with other rounds: hits, half widths and distances."""

    of_others: list[bool] = field(default_factory=list)
    long_run: list[bool] = field(default_factory=list)
    half_widths: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)

    def add(self, drawn: Summary, others_mean: float, error_growth: float) -> None:
        """Compare drawn rounds with the mean of the other rounds.

        ``error_growth`` is the distance to the other rounds' mean, divided by the distance to the
        long-run mean.
        """
        low, high = drawn.interval.low, drawn.interval.high
        long_run = drawn.mean + (others_mean - drawn.mean) / error_growth
        self.of_others.append(low <= others_mean <= high)
        self.long_run.append(low <= long_run <= high)
        self.half_widths.append(drawn.relative_half_width)
        self.distances.append(abs(math.log(drawn.mean / others_mean)))

    def render(self) -> str:
        return (
            f"{_render_share(self.of_others)} hold the others, {_render_share(self.long_run)} the "
            f"long run; half width {np.median(self.half_widths):.1%}; apart "
            f"{np.median(self.distances):.1%}, p90 {np.quantile(self.distances, 0.9):.1%}"
        )


def samples_of_rounds(measurement: Measurement) -> list[NDArray[np.float64]]:
    """The samples of each round of a measurement."""
    ends = np.cumsum(measurement.samples_by_round)[:-1]
    return np.split(np.array(measurement.samples_seconds), ends)


def _render_share(hits: Sequence[bool]) -> str:
    low, high = wilson_interval(sum(hits), len(hits))
    return f"{sum(hits)} of {len(hits)} ({np.mean(hits):.1%}, Wilson {low:.0%} to {high:.0%})"


def main() -> None:
    """Draw rounds, and print a line for each number of rounds."""
    options = _options()
    results = [*load_all(ROOT / "docs/data/results").records.values()]
    for count in options.rounds:
        coverage, generator = _Held(), random.Random(_SEED)
        for result in results:
            if len(result.measurement.rounds) >= 2 * count + 3:
                for _ in range(options.draws):
                    rounds = samples_of_rounds(result.measurement)
                    generator.shuffle(rounds)
                    drawn, remaining = rounds[:count], rounds[count:]
                    coverage.add(
                        summarise(np.concatenate(drawn), [len(samples) for samples in drawn]),
                        float(np.concatenate(remaining).mean()),
                        math.sqrt(1 + count / len(remaining)),
                    )
        shown = coverage.render() if coverage.of_others else "no result has enough rounds"
        print(f"{count} rounds: {shown}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--draws", type=int, default=10, help="of each result")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""Some rounds of committed results against their other rounds: how often an interval holds those.

    python benchmarks/coverage_rounds.py [--rounds 3 4 5 6] [--draws 10]

Of each result in ``docs/data/results`` that has twice as many rounds and three more than are drawn,
some are drawn at random, many times, and their interval is held to the mean of the others. Printed
are the shares that hold it, the half widths at the median, and how far two draws without a common
round are apart. Nothing is measured: the answer is the same on every machine.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from coverage_real import mean_step

from epochcost.results.records import Measurement
from epochcost.results.rounds import add_round
from epochcost.results.store import load_all
from epochcost.statistics import Bounded, wilson_interval

ROOT = Path(__file__).parents[1]
_SEED = 20261125


@dataclass
class _Held:
    """Whether each interval holds the mean of the other rounds, and how wide and far it is."""

    hits: list[bool] = field(default_factory=list)
    half_widths: list[float] = field(default_factory=list)
    apart: list[float] = field(default_factory=list)

    def add(self, one: Bounded, others: Bounded) -> None:
        """An interval of the drawn rounds beside that of the others."""
        self.hits.append(one.low <= others.mean <= one.high)
        self.half_widths.append((one.high - one.low) / 2 / one.mean)
        self.apart.append(abs(np.log(one.mean / others.mean)))

    def words(self) -> str:
        """The shares and widths."""
        low, high = wilson_interval(sum(self.hits), len(self.hits))
        return (
            f"{sum(self.hits)} of {len(self.hits)} hold the others "
            f"({np.mean(self.hits):.0%}, Wilson {low:.0%} to {high:.0%}); half width "
            f"{np.median(self.half_widths):.1%}; apart {np.median(self.apart):.1%}, "
            f"p90 {np.quantile(self.apart, 0.9):.1%}"
        )


def main() -> None:
    """Draw, and print a line for each number of rounds."""
    asked = _options()
    results = load_all(ROOT / "docs/data/results").results
    for count in asked.rounds:
        held, drawn = _Held(), random.Random(_SEED)
        for result in results:
            if len(result.measurement.rounds) >= 2 * count + 3:
                for _ in range(asked.draws):
                    rounds = list(_single(result.measurement))
                    drawn.shuffle(rounds)
                    held.add(
                        *(mean_step(_joined(part)) for part in (rounds[:count], rounds[count:]))
                    )
        print(f"{count} rounds: {held.words()}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--draws", type=int, default=10, help="of each result")
    return parser.parse_args()


def _single(measurement: Measurement) -> Iterator[Measurement]:
    """Each round as a measurement of its own."""
    bounds = accumulate(measurement.samples_by_round, initial=0)
    for turn, (begin, end) in zip(measurement.rounds, pairwise(bounds), strict=True):
        yield measurement.model_copy(
            update={
                "samples_seconds": measurement.samples_seconds[begin:end],
                "started_at": turn.started_at,
                "steps_taken": turn.steps_taken,
                "rounds": (),
            }
        )


def _joined(rounds: Sequence[Measurement]) -> Measurement:
    whole: Measurement | None = None
    for measurement in rounds:
        whole = add_round(whole, measurement, 0.02)
    assert whole is not None, "at least one round is drawn"
    return whole


if __name__ == "__main__":
    main()

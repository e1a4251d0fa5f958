"""Some rounds of committed results against their other rounds: how often an interval holds those.

    python benchmarks/coverage_rounds.py [--rounds 3 4 5 6] [--draws 10]

Of each result in ``docs/data/results`` that has twice as many rounds and three more than are drawn,
some are drawn at random, many times. Held to the mean of the others are the interval of the step as
it was and that of the step undisturbed, and printed are the shares that hold it, the half widths at
the median, and how far two draws without a common round are apart. Nothing is measured: the answer
is the same on every machine.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from coverage_real import plain_step

from epochcost.results.pace import OwnPace, PaceKey, own_paces
from epochcost.results.records import Measurement, Result
from epochcost.results.rounds import add_round
from epochcost.results.store import load_all
from epochcost.results.undisturbed import undisturbed
from epochcost.statistics import Bounded, wilson_interval

ROOT = Path(__file__).parents[1]
_SEED = 20261125


@dataclass
class _Held:
    """Of one kind of interval: whether each holds the other rounds' mean, and how wide it is."""

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
    """Draw, and print two lines for each number of rounds."""
    asked = _options()
    results = load_all(ROOT / "docs/data/results").results
    paces = own_paces(results)
    for count in asked.rounds:
        plain, calm, drawn = _Held(), _Held(), random.Random(_SEED)
        many = [one for one in results if len(one.measurement.rounds) >= 2 * count + 3]
        for result in (one for one in many if one.measurement.pace):
            for _ in range(asked.draws):
                _draw(result, count, drawn, paces, plain, calm)
        print(f"{count} rounds, as it was: {plain.words()}")
        print(f"{count} rounds, undisturbed: {calm.words()}")


def _draw(
    result: Result,
    count: int,
    drawn: random.Random,
    paces: Mapping[PaceKey, OwnPace],
    plain: _Held,
    calm: _Held,
) -> None:
    rounds = list(_single(result.measurement))
    drawn.shuffle(rounds)
    one, others = (_joined(result, each) for each in (rounds[:count], rounds[count:]))
    mine, theirs = undisturbed(one, paces), undisturbed(others, paces)
    plain.add(plain_step(one, mine), plain_step(others, theirs))
    if mine and theirs and mine.step and theirs.step:
        calm.add(mine.step, theirs.step)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--draws", type=int, default=10, help="of each result")
    return parser.parse_args()


def _single(measurement: Measurement) -> Iterator[Measurement]:
    """Each round as a measurement of its own, with its readings."""
    pace = measurement.pace
    assert pace is not None, "only results with readings are drawn"
    bounds = accumulate(measurement.samples_by_round, initial=0)
    names = "product_seconds", "copy_seconds", "waited_seconds", "waited_within_seconds"
    for number, (begin, end) in enumerate(pairwise(bounds)):
        first, last = np.searchsorted(pace.after_samples, (begin, end)).tolist()
        readings = {name: getattr(pace, name)[first:last] for name in names}
        after = tuple(at - begin for at in pace.after_samples[first:last])
        told = measurement.rounds[number]
        yield measurement.model_copy(
            update={
                "samples_seconds": measurement.samples_seconds[begin:end],
                "started_at": told.started_at,
                "steps_taken": told.steps_taken,
                "rounds": (),
                "epochs": None,
                "pace": pace.model_copy(update={"after_samples": after, **readings}),
            }
        )


def _joined(result: Result, rounds: Sequence[Measurement]) -> Result:
    whole: Measurement | None = None
    for one in rounds:
        whole = add_round(whole, one, 0.02)
    return result.model_copy(update={"measurement": whole})


if __name__ == "__main__":
    main()

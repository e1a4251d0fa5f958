"""How often the 95 % interval of a mean step time contains the true mean.

    python benchmarks/coverage.py                 10,000 synthetic traces; minutes on one core
    python benchmarks/coverage.py --traces 1000  fewer
    python benchmarks/coverage.py --real          100 real runs of three processes; 12 minutes
    python benchmarks/coverage.py --real --rounds 1          the same of one process each

Synthetic traces go through the sampler's stopping rule on a simulated clock, so that the effect of
early stopping is included. ``coverage_traces`` defines the random processes of the traces, which
were fixed before the first measurement. ``coverage_real`` explains the real runs.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from coverage_real import against_all_others
from coverage_traces import FAMILIES, Trace
from wilson import wilson_interval

from epochcost.measure.job import SamplingRule
from epochcost.measure.sampling import sample
from epochcost.statistics.interval import mean_interval

# Settings of a study by default, of the starter study, and of --quick.
SETTINGS = {
    "default": SamplingRule(budget_seconds=20),
    "starter": SamplingRule(budget_seconds=12),
    "quick": SamplingRule(relative_half_width=0.05, minimum_samples=10, budget_seconds=3),
}
# Least share of the budget that warm-up takes.
_WARM_UP_SECONDS = 0.25
_ROW = "{:<10} {:<12} {:>7} {:>9} {:>16} {:>8} {:>10} {:>9}"


@dataclass(frozen=True)
class Trial:
    """The result of sampling one trace until the stopping rule ended."""

    covered: bool
    precise: bool
    half_width: float
    seconds: float


class Machine:
    """A simulated machine, whose clock advances only by the step times of a trace."""

    def __init__(self, steps: Iterator[float]) -> None:
        self.now = 0.0
        self._steps = steps

    def clock(self) -> float:
        """The simulated time in seconds."""
        return self.now

    def step(self) -> None:
        """Advance the clock by the next step time."""
        self.now += next(self._steps)


def sampled(trace: Trace, sampling: SamplingRule) -> Trial:
    """Sample a trace as a worker does, and compare the interval with the true mean."""
    machine = Machine(trace.steps())
    deadline = sampling.budget_seconds - _WARM_UP_SECONDS
    sampled_run = sample(machine.step, machine.clock, sampling, deadline, lambda *_: None)
    interval = mean_interval(sampled_run.seconds)
    return Trial(
        covered=interval.low <= trace.mean <= interval.high,
        precise=sampled_run.stop_reason == "precise",
        half_width=(interval.high - interval.low) / 2 / float(np.mean(sampled_run.seconds)),
        seconds=sum(sampled_run.seconds),
    )


def synthetic(count: int) -> None:
    """Sample ``count`` traces, half with either full setting, and half again with --quick."""
    print(_ROW.format("setting", "family", "traces", "covered", "95 % Wilson", "precise", "±", "s"))
    begun = time.perf_counter()
    half = count // 2
    every = _setting("default", range(half)) + _setting("starter", range(half, count))
    print(_row("both", "all", every))
    _setting("quick", range(half))
    print(f"{time.perf_counter() - begun:.0f} s")


def _setting(name: str, numbers: range) -> list[Trial]:
    trials: dict[str, list[Trial]] = defaultdict(list)
    for number in numbers:
        family = FAMILIES[number % len(FAMILIES)]
        trials[family].append(sampled(Trace.draw(family, number), SETTINGS[name]))
    for family, family_trials in trials.items():
        print(_row(name, family, family_trials), flush=True)
    every = [trial for family_trials in trials.values() for trial in family_trials]
    print(_row(name, "all", every), flush=True)
    return every


def _row(setting: str, family: str, trials: Sequence[Trial]) -> str:
    covered = sum(trial.covered for trial in trials)
    low, high = wilson_interval(covered, len(trials))
    return _ROW.format(
        setting,
        family,
        len(trials),
        f"{covered / len(trials):.1%}",
        f"{low:.1%} to {high:.1%}",
        f"{sum(trial.precise for trial in trials) / len(trials):.0%}",
        f"{np.median([trial.half_width for trial in trials]):.2%}",
        f"{np.median([trial.seconds for trial in trials]):.2f}",
    )


def main() -> None:
    """Read the options and measure coverage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--real", action="store_true", help="real runs instead of traces")
    parser.add_argument("--runs", type=int, default=100, help="how many short real runs")
    parser.add_argument("--budget", type=float, default=2.5, help="seconds of a short real run")
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes of a short run")
    parser.add_argument("--model", default="mnist-mlp", help="whose training the real runs are")
    parser.add_argument("--batch", type=int, default=128, help="examples in a step of it")
    options = parser.parse_args()
    if options.real:
        against_all_others(
            options.model, options.batch, options.runs, options.budget, options.rounds
        )
    else:
        synthetic(options.traces)


if __name__ == "__main__":
    main()

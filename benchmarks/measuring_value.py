"""Regret that three measurements remove: those of `launch --plan-by-value`, the cheapest, random.

    python benchmarks/measuring_value.py
    python benchmarks/measuring_value.py --draws 50 --works 10 --spread 0.1

Each table of published rates is left out and predicted from the other tables. A draw is a study of
some works of the table, with drawn prices of its accelerators: proportional to their mean speed,
times a lognormal factor, because today's list prices leave hardly any regret. The answer of a study
is the accelerator with the lowest predicted cost for each work; its regret is the excess over the
lowest true cost. A measurement reveals the published rate of a work on an accelerator and takes the
same time everywhere. The printed table has the mean regret, the regret that the plan expects to
save, and how much more regret the plan removes than the other choices, with the standard error.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epochcost.analysis.measuring_value import steps
from epochcost.predict.design import Devices, Placed, group_of
from epochcost.predict.forecast import Forecaster
from epochcost.predict.learnt import learnt_rates, placed_table
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[1]
_LEAST_ACCELERATORS = 3
_MEASUREMENTS = 3
# A published rate is the truth here, so its measurement has no error.
_NOISE = 1e-6


@dataclass(frozen=True)
class LeftOut:
    """A left-out table: works on accelerators, logarithms of times, and the errors' covariance.

    ``fair`` is a price for each row's accelerator, proportional to the accelerator's mean speed, as
    a logarithm.
    """

    name: str
    work: np.ndarray
    accelerator: np.ndarray
    true: np.ndarray
    predicted: np.ndarray
    covariance: np.ndarray
    fair: np.ndarray


def left_out_tables(devices: Devices) -> Iterator[LeftOut]:
    """Every table with works on at least three accelerators, predicted from the other tables."""
    catalogue = load_catalogue(ROOT)
    learnt = learnt_rates(catalogue, devices)
    for source in dict.fromkeys(row.rate.source for row in learnt):
        rest = [row for row in learnt if row.rate.source != source]
        yield from _left_out(
            source, [row for row in learnt if row.rate.source == source], rest, devices
        )
    for table in catalogue.tables_of("examples"):
        if table.tuned:
            rows = placed_table(catalogue, table, devices)
            yield from _left_out(table.name, rows, learnt, devices)


def _left_out(
    name: str, table: Sequence[Placed], rest: Sequence[Placed], devices: Devices
) -> Iterator[LeftOut]:
    works: dict[object, dict[object, Placed]] = defaultdict(dict)
    for row in table:
        works[*row.rate.work, row.rate.count].setdefault(group_of(row.device), row)
    compared = [each for each in works.values() if len(each) >= _LEAST_ACCELERATORS]
    rows = [row for each in compared for row in each.values()]
    if not rows:
        return
    forecaster = Forecaster(rest, devices)
    groups = list(dict.fromkeys(group_of(row.device) for row in rows))
    work = np.repeat(np.arange(len(compared)), [len(each) for each in compared])
    accelerator = np.array([groups.index(group_of(row.device)) for row in rows])
    rates = [forecast.per_second for forecast in forecaster.of(rows)]
    true = -np.log([row.rate.per_second / row.rate.count for row in rows])
    effects = np.hstack([np.eye(len(groups))[accelerator], np.eye(len(compared))[work]])
    speed = -np.linalg.lstsq(effects, true, rcond=None)[0][accelerator]
    counts = np.array([row.rate.count for row in rows])
    yield LeftOut(
        name,
        work,
        accelerator,
        true,
        -np.log(rates / counts),
        forecaster.errors_of(rows),
        speed,
    )


@dataclass(frozen=True)
class Study:
    """Some works of a table at drawn prices. Arrays have a row for each work on an accelerator."""

    table: LeftOut
    rows: np.ndarray
    price: np.ndarray

    def regret(self, measured: Sequence[int]) -> float:
        """The mean regret of the answers after these rows of the study are measured."""
        table, rows, chosen = self.table, self.rows, list(measured)
        true, seeming = table.true[rows], table.predicted[rows]
        covariance = table.covariance[np.ix_(rows, rows)]
        within = covariance[np.ix_(chosen, chosen)] + _NOISE * np.eye(len(chosen))
        surprise = (true - seeming)[chosen]
        seeming = seeming + covariance[:, chosen] @ np.linalg.solve(within, surprise)
        excess = []
        for work in np.unique(table.work[rows]):
            ways = np.flatnonzero(table.work[rows] == work)
            costs = (self.price + true)[ways]
            excess.append(math.expm1(costs[(self.price + seeming)[ways].argmin()] - costs.min()))
        return float(np.mean(excess))

    def plan(self) -> tuple[list[int], float]:
        """The rows that the plan measures first, and the regret that it expects to save."""
        table, rows = self.table, self.rows
        costs = self.price + table.predicted[rows]
        cheapest_first = np.argsort(costs, kind="stable")
        jobs = [
            list(zip(times.tolist(), costs[times].tolist(), strict=True))
            for work in np.unique(table.work[rows])
            for times in [cheapest_first[table.work[rows][cheapest_first] == work]]
        ]
        dollars = np.exp(self.price - self.price.min())
        prices = dict(enumerate(dollars.tolist()))
        covariance = table.covariance[np.ix_(rows, rows)]
        order = list(steps(jobs, covariance, prices, _MEASUREMENTS, _NOISE))
        times = [time for step in order for time in step.times]
        return times, sum(step.saved.sum() for step in order) / len(jobs)


def compared(table: LeftOut, draws: int, works: int, spread: float) -> np.ndarray:
    """Regrets and expected saving of each draw, as an array [draws, 5]; the seed is fixed.

    The columns are the regret before measurements, the regrets after the plan's, the cheapest and
    random measurements, and the saving that the plan expects.
    """
    random, every = np.random.default_rng(49), np.unique(table.work)
    results = []
    for _ in range(draws):
        drawn = random.choice(every, min(works, len(every)), replace=False)
        rows = np.flatnonzero(np.isin(table.work, drawn))
        factors = spread * random.standard_normal(table.accelerator.max() + 1)
        study = Study(table, rows, (table.fair + factors[table.accelerator])[rows])
        shuffled = random.permutation(len(rows))
        cheapest = shuffled[np.argsort(study.price[shuffled], kind="stable")[:_MEASUREMENTS]]
        plan, expected = study.plan()
        ways = ([], plan, cheapest, random.permutation(len(rows))[:_MEASUREMENTS])
        results.append([*map(study.regret, ways), expected])
    return np.array(results)


def table_row(table: LeftOut, regrets: np.ndarray) -> list[str]:
    """The cells of a left-out table's row in the printed table."""
    means = [f"{100 * mean:.1f} %" for mean in regrets.mean(axis=0)]
    more = 100 * (regrets[:, 2:4] - regrets[:, 1:2])
    errors = more.std(axis=0) / math.sqrt(len(more))
    gains = [
        f"{mean:.1f} ± {error:.1f}" for mean, error in zip(more.mean(axis=0), errors, strict=True)
    ]
    counts = [str(len(np.unique(each))) for each in (table.work, table.accelerator)]
    return [table.name, *counts, *means, *gains]


def main() -> None:
    """Print the table, or its rows as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--works", type=int, default=5, help="works of a study")
    parser.add_argument("--spread", type=float, default=0.3, help="of the logarithms of prices")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    devices = Devices(load_catalogue(ROOT).devices.values())
    for table in left_out_tables(devices):
        regrets = compared(table, options.draws, options.works, options.spread)
        cells = table_row(table, regrets)
        print(json.dumps(cells, ensure_ascii=False) if options.json else "  ".join(cells))


if __name__ == "__main__":
    main()

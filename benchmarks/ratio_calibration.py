"""Calibration of predicted ratios between two machines, and of the odds of the cheaper one.

    python benchmarks/ratio_calibration.py
    python benchmarks/ratio_calibration.py --leave-out generation --json

Two accelerators, or all of two generations, are left out at a time. Each work that ran on both is
predicted for both from the other rows. The table has the share of ratios within the 90 % range of
``predict.joint``. At today's list prices it has the frequency with which the machine predicted to
be cheaper was cheaper, by tens of the stated probability, the Brier score next to that of the base
rate, and the extra cost of following the prediction.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from epochcost.analysis.prediction_trust import hourly_prices
from epochcost.predict.design import Devices, Placed, designed
from epochcost.predict.joint import NINE_OF_TEN, RATIO_SCALE
from epochcost.predict.learnt import learnt_rates
from epochcost.predict.process import POOLED, centred_departures, with_noise
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[1]
# Most works of one pair, so that a pair with hundreds of works does not dominate.
_MOST_OF_A_PAIR = 25
_BINS = 10


@dataclass(frozen=True)
class Compared:
    """One work on two accelerators that were left out, as logarithms of ratios.

    ``error`` is the truth minus the prediction, ``deviation`` the predicted standard deviation,
    ``advantage`` the predicted cost of the first over the second; None without both prices.
    """

    weight: float
    error: float
    deviation: float
    advantage: float | None


def compared(
    rows: list[Placed], devices: Devices, leave_out: str, prices: dict[str, float]
) -> Iterator[Compared]:
    """Every common work of every pair."""
    design = designed(rows, devices)
    inverse = np.linalg.inv(with_noise(design, POOLED))
    departures, _ = centred_departures(design)
    weighted = inverse @ departures
    labels = design.group if leave_out == "accelerator" else design.generation
    for pair in itertools.combinations(np.unique(labels), 2):
        indices = np.flatnonzero(np.isin(labels, pair))
        spread = np.linalg.inv(inverse[np.ix_(indices, indices)])
        departure = spread @ weighted[indices]
        works: dict[int, dict[int, int]] = {}
        for place, row in enumerate(indices):
            works.setdefault(int(design.work[row]), {}).setdefault(int(labels[row]), place)
        pairs = [list(places.values()) for places in works.values() if len(places) == 2]
        for first, second in pairs[:: max(1, len(pairs) // _MOST_OF_A_PAIR)]:
            variance = spread[first, first] + spread[second, second] - 2 * spread[first, second]
            costs = [prices.get(rows[indices[place]].device.id) for place in (first, second)]
            predicted = [
                design.rate[indices[place]] - departure[place] for place in (first, second)
            ]
            price = math.log(costs[0] / costs[1]) if costs[0] and costs[1] else None
            yield Compared(
                1 / min(len(pairs), _MOST_OF_A_PAIR),
                float(departure[first] - departure[second]),
                math.sqrt(variance),
                None if price is None else price - float(predicted[0] - predicted[1]),
            )


def summary(pairs: list[Compared], scale: float) -> dict[str, object]:
    """Coverage, reliability and regret, each pair of machines counting once."""
    weights = np.array([pair.weight for pair in pairs])
    within = [abs(pair.error) <= NINE_OF_TEN * scale * pair.deviation for pair in pairs]
    priced = [pair for pair in pairs if pair.advantage is not None]
    weight = np.array([pair.weight for pair in priced])
    advantage = np.array([pair.advantage for pair in priced])
    deviation = np.array([scale * pair.deviation for pair in priced])
    # The first is cheaper if the predicted advantage minus its error is below zero.
    stated = np.array([0.5 * math.erfc(z / math.sqrt(2)) for z in advantage / deviation])
    truth = advantage - np.array([pair.error for pair in priced]) < 0
    chosen, right = np.maximum(stated, 1 - stated), (stated >= 0.5) == truth
    loss = np.where(right, 0.0, np.expm1(np.abs(advantage - [pair.error for pair in priced])))
    base = np.average(right, weights=weight)
    return {
        "ratios": len(pairs),
        "within 90 %": float(np.average(within, weights=weights)),
        "scale that would hold 90 %": _quantile(
            np.array([abs(pair.error) / pair.deviation for pair in pairs]), weights, 0.9
        )
        / NINE_OF_TEN,
        "half width of a ratio": float(np.exp(np.average(deviation, weights=weight) * NINE_OF_TEN)),
        "priced": len(priced),
        "Brier score": float(np.average((chosen - right) ** 2, weights=weight)),
        "Brier score of the base rate": float(base * (1 - base)),
        "regret, mean": float(np.average(loss, weights=weight)),
        "regret, 90th percentile": _quantile(loss, weight, 0.9),
        "reliability": list(_reliability(chosen, right, weight)),
    }


def _quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(reached, share)), len(values) - 1)])


def _reliability(
    chosen: np.ndarray, right: np.ndarray, weight: np.ndarray
) -> Iterator[dict[str, float]]:
    """Frequency of correct choices by their stated probability, from one half to one."""
    edges = np.linspace(0.5, 1.0, _BINS + 1)
    for low, high in itertools.pairwise(edges):
        inside = (chosen >= low) & ((chosen < high) | (high == 1.0))
        if inside.any():
            yield {
                "stated": float(np.average(chosen[inside], weights=weight[inside])),
                "right": float(np.average(right[inside], weights=weight[inside])),
                "pairs": int(inside.sum()),
            }


def main() -> None:
    """Print the table, or the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leave-out", choices=["accelerator", "generation"], default="accelerator")
    parser.add_argument("--precision", default="", help="rows whose precision has this word")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    catalogue = load_catalogue(ROOT)
    devices = Devices(catalogue.devices.values())
    rows = [
        row for row in learnt_rates(catalogue, devices) if options.precision in row.rate.precision
    ]
    pairs = list(compared(rows, devices, options.leave_out, hourly_prices(catalogue, devices)))
    figures = summary(pairs, RATIO_SCALE)
    if options.json:
        print(json.dumps(figures | {"pairs": [asdict(pair) for pair in pairs]}))
        return
    for name, value in figures.items():
        if name != "reliability":
            print(f"{name:30} {value:.3f}" if isinstance(value, float) else f"{name:30} {value}")
    print("stated probability of the choice, and how often it was right:")
    for row in figures["reliability"]:
        print(f"  {row['stated']:.2f}  {row['right']:.2f}  ({row['pairs']})")


if __name__ == "__main__":
    main()

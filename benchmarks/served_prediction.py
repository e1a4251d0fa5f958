"""Percentiles of tokens at a rate that is left out, from the other rates: committed results.

    python benchmarks/served_prediction.py

Each rate of requests between the lowest and the highest is left out once, and the 90th percentiles
of first and further tokens are interpolated from the others as `epochcost tokens` does it. Printed
are, over what was measured, what was predicted; the eighty percent rate by itself too.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.serving import ServedDecoder, ServedRate, served_decoders
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[1]
_ROW = "{:<12} {:<16} {:<6} {:>7} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7}"
_HELD_OUT = 0.8


def main() -> int:
    """Print the table and how far predictions are off."""
    inputs = read_inputs(load_catalogue(ROOT), [ROOT / "docs/data/results"], ROOT / "docs")
    columns = "first", "predicted", "ratio", "further", "predicted", "ratio"
    print(_ROW.format("machine", "model", "", "rate", *columns))
    ratios: dict[str, list[tuple[float, float]]] = {"first": [], "further": []}
    for one in served_decoders(inputs):
        for rate in one.rates[1:-1]:
            share = float(rate.per_second / one.rates[-1].per_second)
            told = _without(one, rate)
            what = one.machine.hardware, one.model, one.precision, f"{share:.0%}"
            print(_ROW.format(*what, *map(_cell, told)))
            for name, ratio in (("first", told[2]), ("further", told[5])):
                ratios[name].append((share, ratio))
    for name, found in ratios.items():
        print(
            f"{name} tokens: {_off([ratio for _, ratio in found])}; at {_HELD_OUT:.0%}: "
            f"{_off([ratio for share, ratio in found if abs(share - _HELD_OUT) < 0.05])}"
        )
    return 0


def _without(one: ServedDecoder, rate: ServedRate) -> tuple[float, ...]:
    """Measured, predicted and their ratio, of first and of further tokens."""
    left = replace(one, rates=tuple(each for each in one.rates if each != rate))
    pairs = (
        (rate.first_seconds(90), left.first_seconds(rate.per_second, 90)),
        (rate.further_seconds(90), left.further_seconds(rate.per_second, 90)),
    )
    return tuple(
        each
        for measured, predicted in pairs
        for each in (
            measured or float("nan"),
            predicted or float("nan"),
            (predicted or float("nan")) / (measured or float("nan")),
        )
    )


def _cell(value: float) -> str:
    return f"{value:.3f}"


def _off(ratios: list[float]) -> str:
    logarithms = np.abs(np.log([one for one in ratios if one == one]))  # noqa: PLR0124 - not NaN
    within = float((logarithms <= np.log(1.2)).mean())
    return f"{within:.0%} within 20 %, median {np.exp(np.median(logarithms)) - 1:.0%} off"


if __name__ == "__main__":
    sys.exit(main())

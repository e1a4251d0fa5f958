"""Token-time percentiles at a rate that is left out, predicted from the other measured rates.

    python benchmarks/served_prediction.py

Each rate of requests between the lowest and the highest is left out once. The 90th percentiles of
first and further tokens are interpolated from the others as in `epochcost tokens`. Prints predicted
over measured times, and the eighty percent rate separately.
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
    """Print the table and the errors of the predictions."""
    inputs = read_inputs(load_catalogue(ROOT), [ROOT / "docs/data/results"], ROOT / "docs")
    columns = "first", "predicted", "ratio", "further", "predicted", "ratio"
    print(_ROW.format("machine", "model", "", "rate", *columns))
    ratios: dict[str, list[tuple[float, float]]] = {"first": [], "further": []}
    for decoder in served_decoders(inputs):
        for rate in decoder.rates[1:-1]:
            share = float(rate.per_second / decoder.rates[-1].per_second)
            figures = _without(decoder, rate)
            labels = decoder.machine.hardware, decoder.model, decoder.precision, f"{share:.0%}"
            print(_ROW.format(*labels, *map(_cell, figures)))
            for name, ratio in (("first", figures[2]), ("further", figures[5])):
                ratios[name].append((share, ratio))
    for name, values in ratios.items():
        print(
            f"{name} tokens: {_off([ratio for _, ratio in values])}; at {_HELD_OUT:.0%}: "
            f"{_off([ratio for share, ratio in values if abs(share - _HELD_OUT) < 0.05])}"
        )
    return 0


def _without(decoder: ServedDecoder, rate: ServedRate) -> tuple[float, ...]:
    """Measured, predicted and their ratio, of first and of further tokens."""
    remaining = replace(decoder, rates=tuple(each for each in decoder.rates if each != rate))
    pairs = (
        (rate.first_seconds(90), remaining.first_seconds(rate.per_second, 90)),
        (rate.further_seconds(90), remaining.further_seconds(rate.per_second, 90)),
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
    logarithms = np.abs(np.log([ratio for ratio in ratios if ratio == ratio]))  # noqa: PLR0124 - not NaN
    within = float((logarithms <= np.log(1.2)).mean())
    return f"{within:.0%} within 20 %, median {np.exp(np.median(logarithms)) - 1:.0%} off"


if __name__ == "__main__":
    sys.exit(main())

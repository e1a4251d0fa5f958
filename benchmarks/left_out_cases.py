"""How far published rates lie from what is predicted where nothing of their accelerator is known.

    python benchmarks/left_out_cases.py
    python benchmarks/left_out_cases.py --precision tf32 --cases 40 --seed 1
    python benchmarks/left_out_cases.py --doubts

The evaluation is that of `epochcost trust`. Of works whose graphs are known, in one precision, some
cases are drawn by a seed: published, predicted, and whether the 90 % range holds it; the last lines
are of all. ``--doubts`` lists the rows that are not learnt from.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from epochcost.predict.decoders.doubts import doubted_token_rows, doubted_training_rows
from epochcost.predict.decoders.rows import token_rows
from epochcost.predict.decoders.training_rows import training_rows
from epochcost.predict.design import Devices, precision_of
from epochcost.predict.learnt import Doubt, doubted_rows, learnt_rates, placed_tables
from epochcost.predict.withheld import Tried, errors_of, tried
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[1]


def case_line(case: Tried) -> str:
    """One case: what was published and what was predicted of it."""
    rate, predicted = case.placed.rate, case.forecast
    assert predicted is not None, "only cases with a forecast are drawn"
    return (
        f"{rate.mode[:5]:6}{rate.model[-34:]:35}{rate.count:2} x {case.placed.device.name:24}"
        f"{rate.per_second:9.0f} predicted {predicted.per_second:8.0f} "
        f"({predicted.low:.0f} to {predicted.high:.0f}){'' if case.held else '  outside'}"
    )


def summary(cases: Sequence[Tried]) -> str:
    """Coverage and errors of some cases."""
    found = errors_of(cases)
    assert found is not None, "asked of cases with a forecast"
    return (
        f"{found.rows} cases: {100 * found.coverage:.0f} % within the 90 % range; time off by "
        f"{found.median_percent:.0f} % at the median, {found.p90_percent:.0f} % at the 90th "
        f"percentile; half width x {found.half_width:.2f}"
    )


def print_doubts(catalogue: Catalogue, devices: Devices) -> None:
    """Print each row that is not learnt from, and why."""
    doubts: list[Doubt] = []
    for table in catalogue.tables_of("examples"):
        doubts += doubted_rows(placed_tables(catalogue, [table], devices), devices).values()
    doubts += doubted_token_rows(token_rows(catalogue)).values()
    doubts += doubted_training_rows(training_rows(catalogue)).values()
    for doubt in doubts:
        print(f"{doubt.where}: {doubt.reason}")


def main() -> None:
    """Print the cases that were drawn, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=43)
    parser.add_argument("--precision", default="mixed", choices=("mixed", "tf32", "fp32"))
    parser.add_argument("--doubts", action="store_true")
    options = parser.parse_args()
    catalogue = load_catalogue(ROOT)
    devices = Devices(catalogue.devices.values())
    if options.doubts:
        print_doubts(catalogue, devices)
        return
    found = [
        one
        for one in tried(learnt_rates(catalogue, devices), devices, "accelerator")
        if one.forecast
        and one.placed.profile is not None
        and precision_of(one.placed.rate.precision) == options.precision
    ]
    drawn = random.Random(options.seed).sample(found, min(options.cases, len(found)))
    for case in drawn:
        print(case_line(case))
    print(f"drawn: {summary(drawn)}")
    for mode in ("training", "inference"):
        if some := [case for case in found if case.placed.rate.mode == mode]:
            print(f"{mode}: {summary(some)}")
    print(f"all in {options.precision}: {summary(found)}")


if __name__ == "__main__":
    main()

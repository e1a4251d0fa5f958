"""Error of published rates against predictions that exclude all rows of their accelerator.

    python benchmarks/left_out_cases.py
    python benchmarks/left_out_cases.py --precision tf32 --cases 40 --seed 1
    python benchmarks/left_out_cases.py --doubts

The evaluation is that of `epochcost trust`. By a seed, draws some cases of works with known graphs
in one precision. Prints the published and the predicted rate of each, and whether the 90 % range
contains the published rate. The last lines are summaries of all cases. ``--doubts`` lists the rows
that are excluded from learning, and counts those of unknown devices and decoders.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from epochcost.predict.decoders.doubts import doubted_token_rows, doubted_training_rows
from epochcost.predict.decoders.rows import catalogue_lines, token_rows
from epochcost.predict.decoders.training_rows import training_rows
from epochcost.predict.design import Devices, precision_of
from epochcost.predict.learnt import doubted_rows, learnt_rates, placed_table
from epochcost.predict.rates import read_rates
from epochcost.predict.withheld import Tried, errors_of, tried
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.units import render_count

ROOT = Path(__file__).parents[1]


def case_line(case: Tried) -> str:
    """Render one case: published and predicted rate."""
    rate, predicted = case.placed.rate, case.forecast
    assert predicted is not None, "only cases with a forecast are drawn"
    return (
        f"{rate.mode[:5]:6}{rate.model[-34:]:35}{rate.count:2} x {case.placed.device.name:24}"
        f"{rate.per_second:9.0f} predicted {predicted.per_second:8.0f} "
        f"({predicted.low:.0f} to {predicted.high:.0f}){'' if case.covers else '  outside'}"
    )


def summary(cases: Sequence[Tried]) -> str:
    """Render the coverage and errors of some cases."""
    errors = errors_of(cases)
    assert errors is not None, "cases must have a forecast"
    return (
        f"{errors.rows} cases: {100 * errors.coverage:.0f} % within the 90 % range; time off by "
        f"{errors.median_percent:.0f} % at the median, {errors.p90_percent:.0f} % at the 90th "
        f"percentile; half width x {errors.half_width:.2f}"
    )


def unknown_names(catalogue: Catalogue, devices: Devices) -> Iterator[tuple[Path, str, str]]:
    """Yield table, kind and name of each device or decoder of a row that no spec describes."""
    for table in catalogue.tables_of("examples"):
        path = catalogue.table_path(table, table.table)
        for rate in read_rates(path):
            if devices.named(rate.accelerator) is None and rate.accelerator not in table.cpus:
                yield path, "device", rate.accelerator
    for line in catalogue_lines(catalogue):
        if line.device is None:
            yield line.path, "device", line.cells["chip"]
        elif line.form is None:
            yield line.path, "decoder", line.cells["model"]


def print_doubts(catalogue: Catalogue, devices: Devices) -> None:
    """Print each row that is excluded from learning, and the reason."""
    for table in catalogue.tables_of("examples"):
        rates = placed_table(catalogue, table, devices)
        for at, reason in doubted_rows(rates, devices).items():
            print(f"{rates[at].rate.where}: {reason}")
    served = token_rows(catalogue)
    for at, reason in doubted_token_rows(served).items():
        print(f"{served[at].line.where}: {reason}")
    trained = training_rows(catalogue)
    for at, reason in doubted_training_rows(trained).items():
        print(f"{trained[at].line.where}: {reason}")
    for (path, kind, name), rows in Counter(unknown_names(catalogue, devices)).items():
        print(f"{path}: {render_count(rows, 'row')} of {name!r}: no {kind} has this name")


def main() -> None:
    """Print the drawn cases and the totals."""
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
    cases = [
        case
        for case in tried(learnt_rates(catalogue, devices), devices, "accelerator")
        if case.forecast
        and case.placed.profile is not None
        and precision_of(case.placed.rate.precision) == options.precision
    ]
    drawn = random.Random(options.seed).sample(cases, min(options.cases, len(cases)))
    for case in drawn:
        print(case_line(case))
    print(f"drawn: {summary(drawn)}")
    for mode in ("training", "inference"):
        if of_mode := [case for case in cases if case.placed.rate.mode == mode]:
            print(f"{mode}: {summary(of_mode)}")
    print(f"all in {options.precision}: {summary(cases)}")


if __name__ == "__main__":
    main()

"""How far published rates lie from what is predicted where nothing of their device is known.

    python benchmarks/left_out_cases.py
    python benchmarks/left_out_cases.py --cases 20 --seed 1 --precision mixed

Every rate of a work whose graph is known, in one precision, is predicted in its own program from
all rates of other accelerators. The table shows some, drawn by a seed: published, predicted, and
whether the 90 % range holds it; the last lines are of all.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from epochcost.predict.design import Devices, Placed, group_of, precision_of
from epochcost.predict.forecast import Forecast, Forecaster
from epochcost.predict.learnt import learnt_rates
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[1]
Case = tuple[Placed, Forecast]


def cases(rows: Sequence[Placed], devices: Devices, precision: str) -> Iterator[Case]:
    """Each rate with what is predicted of it, one accelerator at a time left out."""
    groups: dict[tuple[str, str], list[Placed]] = defaultdict(list)
    for one in rows:
        if one.profile is not None and precision_of(one.rate.precision) == precision:
            groups[group_of(one.device)].append(one)
    for group, asked in groups.items():
        rest = [one for one in rows if group_of(one.device) != group]
        yield from zip(asked, Forecaster(rest, devices).of(asked), strict=True)


def error_percent(case: Case) -> float:
    """How far the prediction is off, in percent of what was published."""
    published, predicted = case
    return 100 * abs(predicted.per_second / published.rate.per_second - 1)


def is_held(case: Case) -> bool:
    """Whether the 90 % range holds what was published."""
    published, predicted = case
    return predicted.low <= published.rate.per_second <= predicted.high


def summary(found: Sequence[Case]) -> str:
    """Coverage and errors of some cases."""
    errors = sorted(map(error_percent, found))
    return (
        f"{len(found)} cases: {100 * statistics.fmean(map(is_held, found)):.0f} % within the 90 % "
        f"range; off by {statistics.median(errors):.0f} % at the median, "
        f"{errors[int(0.9 * len(errors))]:.0f} % at the 90th percentile"
    )


def main() -> None:
    """Print the table and the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=43)
    parser.add_argument("--precision", default="mixed", choices=("mixed", "tf32", "fp32"))
    options = parser.parse_args()
    catalogue = load_catalogue(ROOT)
    devices = Devices(catalogue.devices.values())
    found = list(cases(learnt_rates(catalogue, devices), devices, options.precision))
    drawn = random.Random(options.seed).sample(found, min(options.cases, len(found)))
    for published, predicted in drawn:
        rate = published.rate
        print(
            f"{rate.mode[:5]:6}{rate.model[-34:]:35}{rate.count:2} x {published.device.name:24}"
            f"{rate.per_second:9.0f} predicted {predicted.per_second:8.0f} "
            f"({predicted.low:.0f} to {predicted.high:.0f})"
            f"{'' if is_held((published, predicted)) else '  outside'}"
        )
    print(f"drawn: {summary(drawn)}")
    for mode in ("training", "inference"):
        if some := [case for case in found if case[0].rate.mode == mode]:
            print(f"{mode}: {summary(some)}")
    print(f"all in {options.precision}: {summary(found)}")


if __name__ == "__main__":
    main()

"""Itemised quotes per second of the cost engine, and whether its time is linear.

    python benchmarks/cost_engine.py [--quotes 100000]

Half of the plans come from specs/prices. The other half is generated so that every kind of part
occurs: accelerators, premiums, storage, egress, runs, commitments, lifetimes, failures, credit.
Each quote has another duration, and its total is summed, so that every line is computed. Prints the
time of a quarter, half and all of the quotes, each the best of three rounds. The ratio is the time
of all quotes divided by the time of a quarter: 4 if the time is linear.
"""

from __future__ import annotations

import argparse
import datetime as dt
import time
from collections.abc import Sequence
from decimal import Decimal
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from epochcost.cost import Usage, quote
from epochcost.specs.loader import load_catalogue
from epochcost.specs.price import Price

ROOT = Path(__file__).parents[1]
ROUNDS = 3
COMPONENTS = (
    {"label": "GPU", "amount": Decimal("0.70"), "count": Decimal(2)},
    {"label": "Skylake", "percent": Decimal("6.07"), "of": ["compute"]},
    {"label": "disk", "amount": Decimal("0.04"), "count": Decimal(100), "per": "gb-month"},
    {"label": "egress", "amount": Decimal("0.12"), "per": "gb"},
    {"label": "job", "amount": Decimal("0.01"), "per": "run"},
)
START = {
    "seconds": Decimal(240),
    "failure_probability": Decimal("0.1"),
    "failure_charge": Decimal(1),
}
COMMITMENT = {
    "term_months": Decimal(12),
    "payment": "partial-upfront",
    "upfront": Decimal(4000),
    "utilisation": Decimal("0.4"),
}


def generated_price(number: int) -> Price:
    """A generated plan: on demand, spot or reserved by ``number``, with every part that fits."""
    hourly = Decimal(number % 97 + 1) / 32
    fields: dict[str, Any] = {"plan": "on-demand", "amount": hourly}
    if number % 3 == 1:
        fields = {"plan": "spot", "amount": hourly, "maximum_lifetime_seconds": Decimal(86_400)}
    if number % 3 == 2:
        fields = {"plan": "reserved", "commitment": {**COMMITMENT, "hourly": hourly}}
    premium_on = ["commitment" if number % 3 == 2 else "compute"]
    components = [
        {**component, "of": premium_on} if "of" in component else component
        for component in COMPONENTS
    ]
    return Price.model_validate(
        {
            "id": f"made-{number}",
            "hardware": "box",
            "provider": "a benchmark",
            "billing": ("prorated", "per-second", "whole-hour", "ten-minutes")[number % 4],
            "components": components,
            "start": START,
            "credit": {"amount": Decimal(300)},
            "source": "a benchmark",
            "as_of": dt.date(2026, 1, 1),
            **fields,
        }
    )


def plans() -> list[Price]:
    """The catalogue's plans and as many generated plans."""
    listed = list(load_catalogue(ROOT).prices.values())
    return [*listed, *map(generated_price, range(len(listed)))]


def quoted(prices: Sequence[Price], quotes: int) -> tuple[float, int, Decimal]:
    """Seconds for ``quotes`` quotes, the number of their lines, and the sum of their totals."""
    lines, total = 0, Decimal(0)
    started = time.process_time()
    for number, price in enumerate(islice(cycle(prices), quotes)):
        egress = Decimal(number % 5) if any(part.per == "gb" for part in price.components) else 0
        usage = Usage(Decimal(number * 37 % 500_000 + 1), vcpus=8, egress_gb=Decimal(egress))
        bill = quote(price, usage)
        lines += len(bill.lines)
        total += bill.total
    return time.process_time() - started, lines, total


def main() -> None:
    """Time a quarter, half and all of the quotes, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quotes", type=int, default=100_000)
    quotes = parser.parse_args().quotes
    prices = plans()
    print(f"{len(prices)} plans; best of {ROUNDS} rounds")
    sizes = quotes // 4, quotes // 2, quotes
    # Interleaved, so that the machine's other load affects all sizes.
    rounds = [[quoted(prices, size) for size in sizes] for _ in range(ROUNDS)]
    best = [min(of_size) for of_size in zip(*rounds, strict=True)]
    for size, (seconds, lines, _) in zip(sizes, best, strict=True):
        print(
            f"{size:>9,} quotes {lines:>9,} lines {seconds:>7.2f} s {seconds / size * 1e6:>6.1f} µs"
        )
    print(f"ratio of {quotes:,} to {sizes[0]:,}: {best[-1][0] / best[0][0]:.2f}")


if __name__ == "__main__":
    main()

"""`epochcost estimate`: the cost of a training that nobody here can run, from its FLOPs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from epochcost.analysis.estimates import TrainingEstimate, estimate_training
from epochcost.cli.bundled import catalogue_to_read
from epochcost.cli.terminal import ExactAmounts, ids, price_words, print_json, print_table, say
from epochcost.cost.flops import OF_LARGE_MODELS, Utilisation
from epochcost.units import money, money_range, scientific, seconds


def estimate(
    model: Annotated[
        str, typer.Option(help="Id of a model in specs/models.", autocompletion=ids("models"))
    ],
    price: Annotated[
        str, typer.Option(help="Id of a price in specs/prices.", autocompletion=ids("prices"))
    ],
    utilisation: Annotated[
        str | None, typer.Option(help="Share of the peak, best as a range: 30-50%.")
    ] = None,
    precision: Annotated[Literal["fp16", "fp32"], typer.Option(help="Which peak.")] = "fp16",
    machines: Annotated[int, typer.Option(help="Machines that share the work evenly.")] = 1,
    form: ExactAmounts = "text",
) -> None:
    """Price a training from its operations alone, as a range.

    Example: epochcost estimate --model gpt2-xl --price p4d.24xlarge-on-demand-2026-07
      --utilisation 0.3-0.5
    """
    catalogue = catalogue_to_read()
    share = OF_LARGE_MODELS if utilisation is None else Utilisation.parse(utilisation)
    estimated = estimate_training(
        catalogue, catalogue.model(model), catalogue.price(price), share, precision, machines
    )
    if form == "json":
        print_json(_as_json(estimated))
    else:
        _show(estimated)


def _as_json(estimated: TrainingEstimate) -> dict[str, Any]:
    work, time, price = estimated.work, estimated.time, estimated.price
    low, middle, high = (bill.total for bill in estimated.bills)
    return {
        "kind": "estimated",
        "model": estimated.model.id,
        "price": price.id,
        "price_as_of": price.as_of,
        "price_assumed": price.assumed,
        "machines": estimated.machines,
        "training_flops": work.flops,
        "peak_flops_per_second": work.peak_flops,
        "precision": estimated.precision,
        "utilisation_low": work.utilisation.low,
        "utilisation_high": work.utilisation.high,
        "utilisation_source": work.utilisation.source,
        "seconds": {"low": time.low, "middle": time.mean, "high": time.high},
        "currency": price.currency,
        "total": {"low": low, "middle": middle, "high": high},
    }


def _show(estimated: TrainingEstimate) -> None:
    work, time, price = estimated.work, estimated.time, estimated.price
    counted = (
        "6 for each parameter and token" if estimated.model.declared else "3 forward passes each"
    )
    number = "1 machine" if estimated.machines == 1 else f"{estimated.machines:,} machines"
    say(
        f"{estimated.model.id}: {scientific(float(work.flops))} operations of a full training "
        f"({counted}) on {number} of {price.hardware}, {scientific(float(work.peak_flops))} a "
        f"second at its {estimated.precision} peak;\n{price_words(price)}"
        f"{', assumed' if price.assumed else ''}\n"
    )
    shares = work.utilisation
    ends = (
        ("at best", shares.high, time.low, estimated.bills[0]),
        ("in the middle", (shares.low + shares.high) / 2, time.mean, estimated.bills[1]),
        ("at worst", shares.low, time.high, estimated.bills[2]),
    )
    rows = [
        (label, f"{share:.3g}", seconds(float(end)), money(bill.total, bill.currency))
        for label, share, end, bill in ends
    ]
    if shares.low == shares.high:
        rows = [("as declared", *rows[1][1:])]
    print_table(("", "share of peak", "time", "total"), rows)
    total = money_range(
        estimated.bills[0].total, estimated.bills[2].total, estimated.bills[0].currency
    )
    say(
        f"\n{total}, estimated from FLOPs and not measured. Utilisation: {shares.words}.\n"
        "Weights, gradients and Adam's states fit; activations are not part of the estimate."
    )

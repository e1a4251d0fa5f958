"""`epochcost estimate`: what training a model costs that nobody here can run, from its FLOPs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from epochcost.analysis.arithmetic import arithmetic_of_model
from epochcost.analysis.estimates import memory_bytes, states_bytes
from epochcost.analysis.observations import mean_time
from epochcost.cli.bundled import catalogue_to_read, results_to_read
from epochcost.cli.terminal import (
    RESULTS,
    ExactAmounts,
    ids,
    price_words,
    print_json,
    print_table,
    say,
)
from epochcost.cost import Quote, Time, Usage, quote
from epochcost.cost.flops import (
    OF_LARGE_MODELS,
    PASSES_PER_STEP,
    Computation,
    Precision,
    Utilisation,
    achieved_utilisation,
    peak_flops,
    training_flops,
)
from epochcost.errors import InputError, UsageError
from epochcost.results.rounds import summary_of
from epochcost.results.store import load_all, newest
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.specs.price import Price
from epochcost.units import memory, money, money_range, scientific, seconds


@dataclass(frozen=True, slots=True)
class _Estimated:
    """Low, middle and high: of the time, and of the bill for each."""

    model: Model
    price: Price
    machines: int
    work: Computation
    precision: Precision
    time: Time
    bills: tuple[Quote, Quote, Quote]


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
    utilisation_of: Annotated[
        str | None,
        typer.Option(
            help="Id of a model timed on that machine, whose share it is.",
            autocompletion=ids("models"),
        ),
    ] = None,
    precision: Annotated[
        Literal["fp16", "fp32"] | None,
        typer.Option(help="Which peak.  [default: fp16; of --utilisation-of: fp32, as timed]"),
    ] = None,
    machines: Annotated[int, typer.Option(help="Machines that share the work evenly.")] = 1,
    results: Annotated[Path, typer.Option(help="Folder of results.")] = RESULTS,
    form: ExactAmounts = "text",
) -> None:
    """Price a training from its operations alone, as a range.

    Example: epochcost estimate --model gpt2-xl --price p4d.24xlarge-on-demand-2026-07
      --utilisation 0.3-0.5
    """
    if utilisation is not None and utilisation_of is not None:
        raise UsageError("estimate: expected --utilisation or --utilisation-of, got both")
    if utilisation_of is not None and precision == "fp16":
        raise UsageError("estimate: --utilisation-of is of fp32, in which models are timed here")
    catalogue = catalogue_to_read()
    hardware = catalogue.machine(catalogue.price(price).hardware)
    peak: Precision = precision or ("fp16" if utilisation_of is None else "fp32")
    if utilisation_of is None:
        share = _declared(utilisation)
    else:
        share = _measured(catalogue, hardware, utilisation_of, results)
    found = _estimated(catalogue, catalogue.model(model), price, share, peak, machines)
    if form == "json":
        print_json(_as_json(found))
    else:
        _show(found)


def _declared(text: str | None) -> Utilisation:
    return OF_LARGE_MODELS if text is None else Utilisation.parse(text)


def _measured(catalogue: Catalogue, hardware: Hardware, name: str, results: Path) -> Utilisation:
    """What plain training steps of a smaller model achieved there, from the least to the most."""
    model = catalogue.model(name)
    per_example, peak = _step_flops(catalogue, model), peak_flops(hardware, "fp32")
    found: list[Utilisation] = []
    for result in newest(load_all(results_to_read(results)).results):
        trial = result.trial
        if (trial.model, trial.mode, trial.provider, result.hardware, trial.variant) == (
            name,
            "training",
            hardware.device,
            hardware.id,
            "",
        ):
            time = mean_time(summary_of(result.measurement))
            found.append(achieved_utilisation(per_example * trial.batch_size, time, peak, name))
    if not found:
        raise InputError(
            f"{name}: expected results of its training on {hardware.id} in {results}, found none"
        )
    low, high = min(one.low for one in found), max(one.high for one in found)
    return Utilisation(low, high, f"{name} as timed on {hardware.id}")


def _step_flops(catalogue: Catalogue, model: Model) -> Decimal:
    """Of one example, as the literature counts a training step: three forward passes."""
    forward = _forward_flops(catalogue, model)
    if forward is None:
        raise InputError(f"{model.id}: expected a model whose graph can be counted, found none")
    return PASSES_PER_STEP * Decimal(forward)


def _forward_flops(catalogue: Catalogue, model: Model) -> float | None:
    counted = arithmetic_of_model(catalogue, model)
    return None if counted is None else counted.forward_flops


def _estimated(
    catalogue: Catalogue,
    model: Model,
    price_id: str,
    utilisation: Utilisation,
    precision: Precision,
    machines: int,
) -> _Estimated:
    price = catalogue.price(price_id)
    hardware = catalogue.machine(price.hardware)
    flops = training_flops(model, _forward_flops(catalogue, model))
    if flops is None:
        raise InputError(
            f"{model.id}: expected a declared model, or one with a graph that can be counted and "
            "[training], got neither"
        )
    needed, held = states_bytes(catalogue, model), machines * memory_bytes(hardware)
    if needed > held:
        raise InputError(
            f"{model.id} does not fit: its weights, gradients and Adam's states need "
            f"{memory(needed)}, {hardware.id} has {memory(held / machines)}: expected --machines "
            f"{math.ceil(needed / held * machines)} or more, got {machines}"
        )
    work = Computation(flops, peak_flops(hardware, precision), utilisation)
    time = work.time(machines)
    low, middle, high = (
        quote(price, Usage(end, machines, hardware.vcpus, bool(hardware.accelerators)))
        for end in (time.low, time.mean, time.high)
    )
    return _Estimated(model, price, machines, work, precision, time, (low, middle, high))


def _as_json(found: _Estimated) -> dict[str, Any]:
    work, time = found.work, found.time
    low, middle, high = found.bills
    return {
        "kind": "estimated",
        "model": found.model.id,
        "price": found.price.id,
        "price_as_of": found.price.as_of,
        "price_assumed": found.price.assumed,
        "machines": found.machines,
        "training_flops": work.flops,
        "peak_flops_per_second": work.peak_flops,
        "precision": found.precision,
        "utilisation_low": work.utilisation.low,
        "utilisation_high": work.utilisation.high,
        "utilisation_source": work.utilisation.source,
        "seconds": {"low": time.low, "middle": time.mean, "high": time.high},
        "currency": low.currency,
        "total": {
            "low": low.total,
            "middle": middle.total,
            "high": high.total,
        },
    }


def _show(found: _Estimated) -> None:
    work, time, price = found.work, found.time, found.price
    counted = "6 for each parameter and token" if found.model.declared else "3 forward passes each"
    number = "1 machine" if found.machines == 1 else f"{found.machines:,} machines"
    say(
        f"{found.model.id}: {scientific(float(work.flops))} operations of a full training "
        f"({counted}) on {number} of {price.hardware}, {scientific(float(work.peak_flops))} a "
        f"second at its {found.precision} peak;\n{price_words(price)}"
        f"{', assumed' if price.assumed else ''}\n"
    )
    shares = work.utilisation
    ends = (
        ("at best", shares.high, time.low, found.bills[0]),
        ("in the middle", (shares.low + shares.high) / 2, time.mean, found.bills[1]),
        ("at worst", shares.low, time.high, found.bills[2]),
    )
    rows = [
        (label, f"{share:.3g}", seconds(float(end)), money(bill.total, bill.currency))
        for label, share, end, bill in ends
    ]
    if shares.low == shares.high:
        rows = [("as declared", *rows[1][1:])]
    print_table(("", "share of peak", "time", "total"), rows)
    total = money_range(found.bills[0].total, found.bills[2].total, found.bills[0].currency)
    say(
        f"\n{total}, estimated from FLOPs and not measured. Utilisation: {shares.words}.\n"
        "Weights, gradients and Adam's states fit; activations are not part of the estimate."
    )

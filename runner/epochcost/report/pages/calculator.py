"""Make the page "Calculator", on which the browser computes the cost of a job of any size.

`calculator.js`, `bill.js` and `odds.js` compute costs from the data scripts of `files`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from operator import itemgetter
from typing import Any

from epochcost.analysis.finetune import SOFTWARE, FinetuneAnswer
from epochcost.analysis.observations import Goal, Stack
from epochcost.analysis.odds import seed_of_observation
from epochcost.analysis.rows import Row, by_stack
from epochcost.cost.estimate import Time
from epochcost.cost.jobs import million_program, serving_program, training_program
from epochcost.cost.program import bill_program, share_program
from epochcost.cost.spot import can_be_interrupted, interrupted_at
from epochcost.errors import InputError
from epochcost.predict.joint import Draws
from epochcost.report.escape import one_line
from epochcost.report.pages.page import METHOD_NAMES, TUNING, Page, Report, html, workload_uri
from epochcost.report.tables import as_script
from epochcost.report.wording import SHAPES, render_billing
from epochcost.specs.price import PLAN_GROUPS, Price
from epochcost.statistics import group_by
from epochcost.units import HOURS_PER_BILLED_MONTH, symbol

Json = dict[str, Any]
# In thousandths: the least draw (None without a bound), the shift, then the weights.
_Drawn = tuple[int | None, ...]
# The place of each row of inputs in a list, by seed.
_DrawnRows = dict[int, dict[_Drawn, int]]
_TUNING_STACK: Stack = "published"
FOLDER = "data/calculator"
_PLANS = "epochcostPlans"
# Texts of a fine-tuning may be this many times as long as those of the published answer.
_LONGEST_TIMES = 4
_JOBS = {"training": "train", "inference": "serve"}
_GOALS: Mapping[str, Goal] = {"train": "epoch", "serve": "million"}
# Common questions: text, model, and query of the calculator's address (calculator.js).
_QUESTIONS = (
    ("BERT fine-tuned three times a week", "bert-base-fine-tune-all", "runs=3&every=week"),
    (
        "the same on my own RTX 4090",
        "bert-base-fine-tune-all",
        "runs=3&every=week&own=workstation-1x-rtx-4090",
    ),
    ("p3 or g5 for ResNet-50", "resnet50", "a=p3.2xlarge&b=g5.xlarge"),
    ("ResNet-50 served at 10 requests a second", "resnet50", "job=serve&rate=10"),
    ("LoRA of Llama 3.1 8B on 10,000 examples", "lora/llama-3.1-8b", "examples=10000&tokens=512"),
    (
        "ten million documents of 200 tokens embedded",
        "minilm-l6",
        "job=batch&examples=10000000&tokens=200",
    ),
    ("ViT-S trained within $200", "vit-s16", "budget=200"),
)
# The workload that the calculator shows first.
_START = _QUESTIONS[0][1]
_SERVED = "llama-3.1-8b"
_SERVED_QUESTION = "Llama 3.1 8B at 2 requests a second: self-hosted or by an API"


def questions(report: Report) -> list[tuple[str, str]]:
    """List common questions that the site answers, each with the address of its answer."""
    models = {
        *(workload.key for workload in report.workloads),
        *map(_tuning_key, _fine_tunings(report)),
    }
    sign = symbol(report.currency or "USD")
    asked = [
        (words.replace("$", sign), f"calculator.html?model={model}&{query}")
        for words, model, query in _QUESTIONS
        if model in models and _machines_named_in(query) <= report.catalogue.hardware.keys()
    ]
    if _SERVED in report.tokens:
        query = "requests=2&prompt=1000&answer=200#your-traffic"
        asked.append((_SERVED_QUESTION, f"models/{_SERVED}.html?{query}"))
    return asked


def _machines_named_in(query: str) -> set[str]:
    fields = (field.split("=") for field in query.split("&"))
    return {value for name, value in fields if name in {"a", "b", "own"}}


def pages(report: Report) -> Iterator[Page]:
    """Yield the page of the calculator."""
    rows_by_key = _priced_rows_by_workload(report)
    names = {key: one_line(rows[0].observed.workload.name) for key, rows in rows_by_key.items()}
    names |= {
        _tuning_key(answer): f"{report.catalogue.models[name].name}, {METHOD_NAMES[method]}"
        for name, methods in report.tuned.items()
        for method, answer in methods.items()
    }
    known_best = max(rows_by_key, key=lambda key: len(rows_by_key[key]), default="")
    start = _START if _START in rows_by_key else known_best
    model = report.catalogue.models.get(start)
    yield Page(
        uri="calculator.md",
        title="Calculator",
        template="calculator.md.jinja",
        description="What your training or serving costs, on every machine, or on two you name.",
        context={
            "workloads": sorted(names.items(), key=lambda entry: entry[1].casefold()),
            # A fine-tuning is a training.
            "jobs": dict.fromkeys(names, "train")
            | {
                key: " ".join(sorted({_JOBS[row.mode] for row in rows}))
                for key, rows in rows_by_key.items()
            },
            "start": start,
            "texts": model and model.tokens_per_example,
            "questions": questions(report),
            "data": FOLDER,
            "plan_groups": list(PLAN_GROUPS.items()),
            "owned": sorted(_machines_with_owned_plan(report), key=itemgetter(1)),
        },
    )


def _machines_with_owned_plan(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the id and the name of each machine that has a price plan for its owner."""
    for hardware in report.catalogue.hardware.values():
        if any(price.owned for price in report.catalogue.prices_of(hardware.id)):
            yield hardware.id, one_line(hardware.name)


def files(report: Report) -> Iterator[tuple[str, str]]:
    """Yield scripts by address: all price plans, and the times of each workload and fine-tuning."""
    rows_by_key = _priced_rows_by_workload(report)
    tunings = _fine_tunings(report)
    prices = [row.price for rows in rows_by_key.values() for row in rows if row.price]
    prices += [offer.key.price for answer in tunings for offer in answer.offers]
    plans = {price.id: price for price in prices}
    by_machine = group_by(plans.values(), lambda price: price.hardware)
    machine_defaults = {
        machine: _machine_defaults(report, machine, prices)
        for machine, prices in sorted(by_machine.items())
    }
    shared = {
        "plans": {identifier: _plan(price) for identifier, price in sorted(plans.items())},
        "shapes": dict(SHAPES),
        "machines": machine_defaults,
        "currency": report.currency,
        "month_hours": HOURS_PER_BILLED_MONTH,
        "jobs": {
            "training": training_program(),
            "serving": serving_program(),
            "million": million_program(),
        },
    }
    yield f"{FOLDER}/plans.js", as_script(_PLANS, shared)
    jobs = {
        key: _workload_json(rows, machine_defaults) | _about_workload(report, rows)
        for key, rows in rows_by_key.items()
    }
    jobs |= {
        _tuning_key(answer): _fine_tuning_json(report, answer, machine_defaults)
        for answer in tunings
    }
    for key, timings in jobs.items():
        yield f"{FOLDER}/{key}.js", as_script(f"epochcost/{key}", timings)


def _about_workload(report: Report, rows: Sequence[Row]) -> Json:
    workload = rows[0].observed.workload
    model = report.catalogue.models.get(workload.key)
    data = report.catalogue.dataset(model.dataset) if model and model.dataset else None
    return {
        "examples": model.training.examples_per_epoch if model and model.training else None,
        "page": html(workload_uri(workload)),
        "tokens": model.tokens_per_example if model else None,
        "most_tokens": model.most_tokens if model else None,
        "dataset": one_line(data.name) if data else None,
    }


def _fine_tunings(report: Report) -> list[FinetuneAnswer]:
    return [answer for methods in report.tuned.values() for answer in methods.values()]


def _tuning_key(answer: FinetuneAnswer) -> str:
    return f"{answer.demand.method}/{answer.demand.model}"


def _fine_tuning_json(
    report: Report, answer: FinetuneAnswer, machine_defaults: Mapping[str, Json]
) -> Json:
    examples, tokens, epochs = TUNING
    context = report.catalogue.decoder(answer.demand.model).context
    longest = min(_LONGEST_TIMES * tokens, context)
    slower = _slower_tokens(report, answer, longest)
    drawn: _DrawnRows = {}
    timings = []
    for offers in group_by(answer.offers, lambda offer: offer.key.way.hardware.id).values():
        way = offers[0].key.way
        timing = {
            "machine": way.hardware.id,
            "kind": "predicted",
            "software": SOFTWARE,
            "stack": _TUNING_STACK,
            "precision": way.precision,
            "batch": way.setting.sequences,
            # The seconds of an epoch.
            "seconds": _low_mean_high(way.time, epochs),
            "plans": sorted(offer.key.price.id for offer in offers),
            "extrapolated": answer.extrapolates(way),
            # Missing if the longest texts do not fit the machine's memory.
            **({"slower": slower[way.hardware.id]} if way.hardware.id in slower else {}),
        }
        timing |= _store_weights(way.forecast.draws, drawn)
        timings.append(_without_machine_defaults(timing, machine_defaults))
    return {
        "epochs": epochs,
        "examples": examples,
        "tokens": tokens,
        "longest": longest,
        "context": context,
        "compared": "how-to/price-fine-tuning.html",
        "page": f"models/{answer.demand.model}.html",
        "draws": {seed: list(places) for seed, places in drawn.items()},
        "stacks": {"train": [_TUNING_STACK], "serve": []},
        "train": timings,
        "serve": [],
    }


def _slower_tokens(report: Report, answer: FinetuneAnswer, length: int) -> Mapping[str, float]:
    """The factor by which training on a token slows in texts of ``length`` tokens, by machine id.

    The texts of ``answer.demand`` have factor 1. Machines that cannot train have no entry.
    """
    try:
        longer = report.tuning_market.seconds(replace(answer.demand, length=length))
    except InputError:
        return {}
    usual = {offer.key.way.hardware.id: offer.key.way.time.mean for offer in answer.offers}
    return {
        machine: round(float(longer[machine] / usual[machine]), 3)
        for machine in usual
        if machine in longer
    }


def _machine_defaults(report: Report, hardware: str, prices: Iterable[Price]) -> Json:
    spec = report.catalogue.hardware[hardware]
    plans = sorted(price.id for price in prices)
    return {"name": one_line(spec.name), "vcpus": spec.vcpus or 1, "plans": plans}


def _priced_rows_by_workload(report: Report) -> Mapping[str, tuple[Row, ...]]:
    priced = [
        row
        for row in report.rows
        if row.current
        and row.observed.epochs_known
        and row.estimate("epoch" if row.mode == "training" else "million") is not None
    ]
    return group_by(priced, lambda row: row.observed.workload.key)


def _workload_json(rows: Sequence[Row], machine_defaults: Mapping[str, Json]) -> Json:
    epochs = [float(row.observed.epochs) for row in rows if row.observed.epochs]
    timings: dict[str, list[Json]] = {job: [] for job in _JOBS.values()}
    drawn: _DrawnRows = {}
    for mine in group_by(rows, lambda row: id(row.observed)).values():
        observed = mine[0].observed
        seed = {"seed": seed_of_observation(observed)}
        draws = _store_weights(observed.draws, drawn) if observed.draws else seed
        timing = _timing_with_plans(mine) | draws
        timings[_JOBS[observed.mode]].append(_without_machine_defaults(timing, machine_defaults))
    listed = {seed: list(places) for seed, places in drawn.items()}
    # The surest stack comes first.
    stacks = {
        job: [group[0].observed.stack for group in by_stack(rows, goal)]
        for job, goal in _GOALS.items()
    }
    return {"epochs": epochs[0] if epochs else 1, "draws": listed, "stacks": stacks, **timings}


def _without_machine_defaults(timing: Json, machine_defaults: Mapping[str, Json]) -> Json:
    of_machine = machine_defaults[timing["machine"]].items()
    return dict(pair for pair in timing.items() if pair not in of_machine)


def _store_weights(draws: Draws, rows_by_seed: _DrawnRows) -> Json:
    """Store what the browser needs to repeat the random ``draws`` of a forecast.

    A draw is a weighted sum of standard normal numbers plus a shift, but at least a lower limit.
    The seed's list in ``rows_by_seed`` gets a row: limit, shift and weights, each times 1000.
    Returns the seed and the row's index.
    """
    least = round(1000 * draws.least) if math.isfinite(draws.least) else None
    indices = rows_by_seed.setdefault(draws.seed, {})
    key = least, *(round(1000 * part) for part in (draws.shift, *draws.weights))
    return {"seed": draws.seed, "row": indices.setdefault(key, len(indices))}


def _timing_with_plans(rows: Sequence[Row]) -> Json:
    """An observation's time of an epoch or inference batch, its settings and price plan ids."""
    observed = rows[0].observed
    time = observed.epoch if observed.mode == "training" else observed.step
    assert time is not None, "a priced row has a time"
    return {
        "machine": observed.machine.hardware,
        "name": one_line(observed.machine.name),
        "kind": observed.kind,
        "software": one_line(observed.software),
        "stack": observed.stack,
        "precision": observed.precision,
        "batch": observed.batch_size,
        "vcpus": observed.machine.vcpus or 1,
        "seconds": _low_mean_high(time),
        "plans": sorted(row.price.id for row in rows if row.price),
    }


def _low_mean_high(time: Time, divisor: int = 1) -> list[float]:
    # Nine digits keep the script small.
    return [float(f"{end / divisor:.9g}") for end in (time.low, time.mean, time.high)]


def _plan(price: Price) -> Json:
    interrupted = interrupted_at(price, Decimal(1)) if can_be_interrupted(price) else None
    rate = price.interruptions.rate_per_hour if price.interruptions else 0
    return {
        "name": one_line(" ".join(price.provider_and_plan)),
        "group": price.kind.group,
        "region": one_line(price.region or ""),
        "as_of": str(price.as_of),
        "assumed": price.assumed,
        "unconfirmed": price.unconfirmed_text,
        "billing": "" if price.owned else render_billing(price.billing_rule),
        "committed": price.commitment is not None,
        "own": price.owned is not None,
        "interruptions": None if price.interruptions_unknown else float(rate),
        "currency": price.currency,
        "bill": _program_json(bill_program, price),
        # The reader may enter the rate of interruptions that the provider does not state.
        **({"interrupted": _program_json(bill_program, interrupted)} if interrupted else {}),
        "share": _program_json(share_program, price),
    }


def _program_json(make_program: Callable[[Price], Json], price: Price) -> Json | None:
    try:
        return make_program(price)
    except InputError:
        return None

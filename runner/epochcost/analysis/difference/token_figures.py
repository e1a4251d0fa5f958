"""Compute the cost of a million tokens of each decoder in two revisions.

Only predicted times count, because changed measured times are listed as changed results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from epochcost.analysis.difference.revision import Revision
from epochcost.analysis.difference.table_diff import Figure, Job
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.table.lines import Values
from epochcost.analysis.token_answers import TokenMarket, usual_answers
from epochcost.analysis.tokens import Requests, ServingOffer
from epochcost.units import plain


def token_figures(before: Revision, after: Revision) -> tuple[list[Figure], list[Figure]]:
    """Figures before and after, for typical requests on machines whose costs may have changed."""
    old, new = before.catalogue, after.catalogue
    machines = {*old.hardware, *new.hardware}
    if TokenMarket(before.inputs).evidence == TokenMarket(after.inputs).evidence:
        machines = {
            name
            for name in machines
            if old.hardware.get(name) != new.hardware.get(name)
            or old.prices_of(name) != new.prices_of(name)
        }
    return [*_figures(before.inputs, machines)], [*_figures(after.inputs, machines)]


def _figures(inputs: Inputs, machines: Collection[str]) -> Iterator[Figure]:
    specs = inputs.catalogue.hardware.items()
    hardware = {name: spec for name, spec in specs if name in machines}
    catalogue = replace(inputs.catalogue, hardware=hardware)
    market = TokenMarket(replace(inputs, catalogue=catalogue, stored=(), reported={}))
    for name, answer in usual_answers(market).items() if hardware else ():
        yield from (_figure(name, answer.requests, offer) for offer in answer.offers)


def _figure(model: str, requests: Requests, offer: ServingOffer) -> Figure:
    deployed, cost = offer.deployment, offer.per_million
    job = Job(
        workload=model,
        mode="tokens",
        device=deployed.machine.device,
        hardware=deployed.machine.hardware,
        scenario=f"{plain(requests.per_second)} request/s of {requests.lengths_text}",
        goal="tokens",
        kind="predicted",
        source=f"predicted: {deployed.software}, {deployed.precision}",
    )
    values: Values = {
        "figure": offer.mark,
        "price": offer.price.id,
        "currency": cost.currency,
        "step_s": offer.capacity.request.mean,
        "tokens_time_s": offer.capacity.request.mean,
        "tokens_cost": cost.mean,
        "tokens_cost_low": cost.low,
        "tokens_cost_high": cost.high,
    }
    return Figure(job, values)

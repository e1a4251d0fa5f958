"""Make the lines of the published table of costs and times; `columns` describes the columns."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from epochcost.analysis.comparisons import VariantRow
from epochcost.analysis.estimates import EstimatedRow
from epochcost.analysis.machines import Machine, published_machine
from epochcost.analysis.observations import Goal, Observation
from epochcost.analysis.rows import Row, mark_of
from epochcost.analysis.serving import ServingRow
from epochcost.cost.estimate import Cost, Estimate, Time, Unpriced
from epochcost.results.served import LoadGenRun
from epochcost.specs.price import Price

Value = str | int | Decimal | None
Values = Mapping[str, Value]
Line = Row | VariantRow | ServingRow | EstimatedRow


def values_of(line: Line) -> Values:
    """The values of a line by the column's name; a column without a value is None or missing."""
    if isinstance(line, Row):
        return _of_row(line)
    if isinstance(line, VariantRow):
        return _of_variant(line)
    if isinstance(line, ServingRow):
        return _of_serving(line)
    return _of_estimate(line)


def _of_row(row: Row) -> Values:
    return {
        **_observed(row.observed),
        **_price(row.price, current=row.current),
        "reservation": row.reservation or None,
        **_costs(row.costs),
        "figure": row.mark,
    }


def _of_variant(row: VariantRow) -> Values:
    return {
        **_observed(row.observed),
        **_price(row.job.price, current=True),
        **_costs({row.observed.goals[0]: row.job.cost}),
        "price_basis": row.job.basis or None,
        "figure": mark_of("measured", row.job.price),
    }


def _of_serving(row: ServingRow) -> Values:
    return {
        "workload": row.model,
        "task": row.task,
        "mode": "inference",
        "scenario": row.load,
        "batching": row.batching,
        "batch_size": row.batch_size,
        **_machine(row.machine),
        "software": row.software,
        "date": str(row.date),
        **(_run(row.run) if row.run else {}),
        **_price(row.price, current=True),
        **_costs({"million": row.million}),
        "figure": row.mark,
        "doubts": "; ".join(row.doubts) or None,
        "evidence": row.evidence.uri,
    }


def _run(run: LoadGenRun) -> Values:
    return {
        "samples_per_second": Decimal(repr(run.samples_per_second)),
        "latency_p50_s": Decimal(run.latency.p50_nanoseconds).scaleb(-9),
        "latency_p90_s": Decimal(run.latency.p90_nanoseconds).scaleb(-9),
        "latency_p99_s": Decimal(run.latency.p99_nanoseconds).scaleb(-9),
    }


def _of_estimate(row: EstimatedRow) -> Values:
    model = row.model
    return {
        "workload": model.id,
        "task": model.task,
        "mode": "training",
        **_machine(published_machine(row.hardware)),
        "epochs": model.training.epochs if model.training else None,
        "date": str(row.price.as_of),
        **_time("full_time", row.time),
        **_price(row.price, current=True),
        **_costs({"full": row.cost}),
        "figure": row.mark,
        "evidence": f"models/{model.id}.html",
    }


def _observed(observed: Observation) -> Values:
    ratio = observed.step_ratio
    return {
        "workload": observed.workload.id,
        "task": observed.workload.task,
        "mode": observed.mode,
        "variant": observed.variant or None,
        **_machine(observed.machine, observed.vcpus),
        "software": observed.software,
        "stack": observed.stack,
        "precision": observed.precision or None,
        "batch_size": observed.batch_size,
        "epochs": observed.epochs,
        "epochs_known": _yes_no(observed.epochs_known) if observed.mode == "training" else None,
        "date": str(observed.date),
        **_time("step", observed.step),
        **_time("epoch_time", observed.epoch),
        **_time("full_time", observed.full),
        **_time("million_time", observed.million),
        # Only a comparison of exactly this work, without a neighbouring batch size.
        "step_ratio": ratio.value if ratio and not ratio.where else None,
        "step_energy_j": observed.step_joules,
        "energy_meters": observed.meters,
        "peak_memory_bytes": observed.peak_memory_bytes,
        "samples": observed.summary.count if observed.summary else None,
        "stop_reason": observed.stop_reason,
        "doubts": "; ".join(observed.doubts) or None,
        "evidence": observed.evidence.uri,
    }


def _machine(machine: Machine, used_vcpus: int | None = None) -> Values:
    return {
        "hardware": machine.hardware,
        "host": machine.host,
        "machine": machine.name,
        "device": machine.device,
        "vcpus": used_vcpus or machine.vcpus,
    }


def _price(price: Price | None, *, current: bool) -> Values:
    if price is None:
        return {}
    return {
        "price": price.id,
        "provider": price.provider,
        "plan": price.plan,
        "region": price.region,
        "price_as_of": str(price.as_of),
        "price_unconfirmed": price.unconfirmed_text or None,
        "price_current": _yes_no(current),
        "currency": price.currency,
    }


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


def _costs(costs: Mapping[Goal, Cost]) -> Values:
    reasons = [cost.reason for cost in costs.values() if isinstance(cost, Unpriced)]
    values: dict[str, Value] = {"unpriced_because": next(iter(reasons), None)}
    for goal, cost in costs.items():
        if isinstance(cost, Estimate):
            values |= _value_with_ends(f"{goal}_cost", "", cost)
    return values


def _time(name: str, time: Time | None) -> Values:
    return _value_with_ends(name, "_s", time) if time else {}


def _value_with_ends(name: str, suffix: str, value: Time | Estimate) -> Values:
    exact = value.low == value.high
    return {
        f"{name}_low{suffix}": None if exact else value.known_low,
        f"{name}{suffix}": value.mean,
        f"{name}_high{suffix}": None if exact else value.high,
    }

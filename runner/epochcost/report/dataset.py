"""Every row of the site as one flat table, and the dictionary of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost import Cost, Estimate, Time, Unpriced
from epochcost.report.rows import Row
from epochcost.report.tables import Column, Table, Value


@dataclass(frozen=True)
class _Field:
    name: str
    meaning: str
    of: Callable[[Row], Value]


def dataset(rows: Iterable[Row]) -> Table:
    """One line per timed workload and price plan; amounts are in the line's currency."""
    columns = tuple(Column(field.name, field.name, meaning=field.meaning) for field in _FIELDS)
    return Table(columns, tuple(tuple(field.of(row) for field in _FIELDS) for row in rows))


def _price(attribute: str) -> Callable[[Row], Value]:
    def of(row: Row) -> Value:
        value = getattr(row.price, attribute, None)
        return None if value is None else str(value)

    return of


def _time(name: str, meaning: str, of: Callable[[Row], Time | None]) -> tuple[_Field, ...]:
    return tuple(
        _Field(f"{name}{end}_s", f"{meaning}, in seconds{words}", _end(of, attribute))
        for end, attribute, words in _ENDS
    )


def _cost(name: str, meaning: str, of: Callable[[Row], Cost | None]) -> tuple[_Field, ...]:
    return tuple(
        _Field(f"{name}{end}", f"{meaning}, in the currency{words}", _end(of, attribute))
        for end, attribute, words in _ENDS
    )


def _end(of: Callable[[Row], Time | Cost | None], attribute: str) -> Callable[[Row], Value]:
    """One end of a quantity; the ends of what has no interval are unknown."""

    def value(row: Row) -> Value:
        found = of(row)
        if found is None or isinstance(found, Unpriced):
            return None
        return None if attribute != "mean" and found.low == found.high else _of(found, attribute)

    return value


def _of(found: Time | Estimate, attribute: str) -> Decimal:
    return {"low": found.low, "mean": found.mean, "high": found.high}[attribute]


def _exact_ratio(row: Row) -> Value:
    """Where the work that was compared is that of the row."""
    ratio = row.observed.step_ratio
    return ratio.value if ratio and not ratio.where else None


def _unpriced(row: Row) -> Value:
    cost = row.training.epoch if row.training else row.inference
    return cost.reason if isinstance(cost, Unpriced) else None


_ENDS = (
    ("", "mean", ""),
    ("_low", "low", ": lower end of the 95 % interval of the mean"),
    ("_high", "high", ": upper end of the 95 % interval of the mean"),
)
_FIELDS: tuple[_Field, ...] = (
    _Field(
        "workload", "id of the model, or of the published table", lambda r: r.observed.subject.id
    ),
    _Field("figure", "measured or published, and whether the price is assumed", lambda r: r.mark),
    _Field("mode", "training or inference", lambda r: r.observed.mode),
    _Field("hardware", "id of the machine's kind", lambda r: r.observed.machine.hardware),
    _Field("host", "fingerprint of the measured host", lambda r: r.observed.machine.host),
    _Field("machine", "the machine for people", lambda r: r.observed.machine.name),
    _Field("device", "cpu or cuda", lambda r: r.observed.machine.device),
    _Field("software", "what executed the work", lambda r: r.observed.software),
    _Field("batch_size", "examples per step", lambda r: r.observed.batch_size),
    _Field("epochs", "epochs of the full training", lambda r: r.observed.epochs),
    _Field("date", "day of the measurement or of the source", lambda r: str(r.observed.date)),
    *_time("step", "mean time of one batch", lambda r: r.observed.step),
    *_time("epoch_time", "time of one epoch", lambda r: r.observed.epoch),
    *_time("full_time", "time of the full training", lambda r: r.observed.full),
    *_time("million_time", "time of a million inferences", lambda r: r.observed.million),
    _Field("price", "id of the price plan; empty where no price is known", _price("id")),
    _Field("provider", "who asks the price", _price("provider")),
    _Field("plan", "on-demand, spot or owned", _price("plan")),
    _Field("region", "where the price holds", _price("region")),
    _Field("price_as_of", "day at which the price held", _price("as_of")),
    _Field("currency", "currency of the costs", _price("currency")),
    _Field(
        "price_current",
        "yes where no newer price of the plan is known",
        lambda r: "yes" if r.current else "no",
    ),
    _Field("unpriced_because", "why there is no cost", _unpriced),
    *_cost("epoch_cost", "cost of one epoch of a running job", lambda r: r.cost("epoch")),
    *_cost("full_cost", "bill of the full training", lambda r: r.cost("full")),
    *_cost("million_cost", "cost of a million inferences", lambda r: r.cost("million")),
    _Field(
        "step_ratio",
        "our training step's time over PyTorch's; empty where not measured for this batch size",
        _exact_ratio,
    ),
    _Field(
        "step_energy_j",
        "joules of a mean step, by the meters named; empty where none read",
        lambda r: r.observed.step_joules,
    ),
    _Field(
        "energy_meters",
        "which meters read while steps were timed; what they leave out is not counted",
        lambda r: r.observed.meters,
    ),
    _Field(
        "doubts",
        "in what the machine is not the declared one, and why the figure may not repeat",
        lambda r: "; ".join(r.observed.doubts) or None,
    ),
    _Field(
        "evidence", "the file or page that the figure comes from", lambda r: r.observed.evidence.uri
    ),
)

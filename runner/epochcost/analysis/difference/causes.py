"""Find the causes of a changed cost: a changed spec or price, or a significantly changed time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel

from epochcost.analysis.difference.revision import Revision
from epochcost.analysis.difference.table_diff import Figure, Pair
from epochcost.results.records import Result
from epochcost.results.rounds import round_count, summary_of
from epochcost.specs.base import Identity, NamedSpec
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.wording import describe
from epochcost.statistics.interval import Bounded, TimeChange, time_change
from epochcost.units import plain, render_some, share

# "spec": the amount of work or the machine's facts; "method": how the work was measured.
# "prediction": the data from which a time is predicted.
CauseKind = Literal["time", "method", "prediction", "spec", "price"]
_BY_CHANCE = "measured again; the difference is within the noise"
# Keys that change the bill of a measured time, but not the work of a step.
_LENGTH_OF_TRAINING = ("training.examples_per_epoch", "training.epochs")
_SIZE_OF_MACHINE = ("vcpus", "accelerators")
_WHOLE_SPEC = ("",)
_MOST_KEYS = 3
# Descriptive keys of a spec, which change no cost.
_DESCRIPTIVE = frozenset({"id", "name", "notes", "source", "unconfirmed", "as_of"})


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of a changed cost; ``text`` names the quantity and by how much it changed."""

    kind: CauseKind
    text: str


@dataclass(frozen=True, slots=True)
class ChangedCost:
    """A job's cost under a price plan in two revisions, and the causes of the change.

    A figure is None if its revision lacks the job or the plan. If the job was measured again,
    ``time`` compares the times of a step. ``causes`` is empty if nothing but noise was found.
    """

    before: Figure | None
    after: Figure | None
    causes: tuple[Cause, ...]
    time: TimeChange | None = None

    @property
    def figure(self) -> Figure:
        """The job's figure in the later revision, or in the earlier one if the later lacks it."""
        either = self.after or self.before
        assert either is not None, "a change has a side"
        return either

    @property
    def amount(self) -> Decimal | None:
        """The later cost minus the earlier; None if either is unknown or currencies differ."""
        old, new = (side.cost if side else None for side in (self.before, self.after))
        return None if old is None or new is None or self.changes_currency else new - old

    @property
    def changes_currency(self) -> bool:
        """Whether both revisions have a cost, but in different currencies."""
        priced = [side for side in (self.before, self.after) if side and side.cost is not None]
        return len({side.currency for side in priced}) > 1

    @property
    def relative(self) -> float | None:
        """The change as a share of the earlier cost; None if unknown or if that cost is 0."""
        if self.amount is None or self.before is None or not self.before.cost:
            return None
        return float(self.amount / self.before.cost)

    @property
    def is_unpriced(self) -> bool:
        """Whether neither revision has a cost of the job; its times may still differ."""
        return all(side is None or side.cost is None for side in (self.before, self.after))

    @property
    def only_predicted(self) -> bool:
        """Whether changed predictions are the only cause."""
        return [cause.kind for cause in self.causes] == ["prediction"]


def explain(pair: Pair, before: Revision, after: Revision, learned: str) -> ChangedCost:
    """Find the causes of a changed cost; ``learned`` is the text for a changed prediction."""
    old, new = pair
    if old is None or new is None:
        prices = (side.price if side else None for side in pair)
        return ChangedCost(old, new, (Cause("price", _render_addition_or_removal(*prices)),))
    results = [
        side.stored[figure.text("evidence")].result
        for side, figure in ((before, old), (after, new))
        if figure.job.kind == "measured"
    ]
    again = len(results) == 2 and results[0] != results[1]
    of_steps = all(result.measurement.samples_seconds for result in results)
    time = _step_time_change(*results) if again and of_steps else None
    timed = _time_causes(old, new, results, time, learned)
    catalogues = before.catalogue, after.catalogue
    texts: dict[CauseKind, str] = {
        "spec": _render_spec_change(old, new, *catalogues),
        "price": _render_price_change(old, new, *catalogues),
    }
    causes = [*timed, *(Cause(kind, text) for kind, text in texts.items() if text)]
    if again and causes and not timed:
        causes.insert(0, Cause("time", _BY_CHANCE))
    if not causes and not again:
        causes.append(Cause("spec", "other keys of the specs changed"))
    return ChangedCost(old, new, tuple(causes), time)


def _time_causes(
    old: Figure, new: Figure, results: list[Result], time: TimeChange | None, learned: str
) -> tuple[Cause, ...]:
    if new.job.kind == "predicted" and old.text("step_s") != new.text("step_s"):
        return (Cause("prediction", learned or "its data changed"),)
    if time is None or not time.significant:
        return ()
    method = changed_keys(results[0].trial, results[1].trial)
    low, mean, high = (
        share(end - 1, "+", 1) for end in (time.factor.low, time.factor.mean, time.factor.high)
    )
    change = f"step {mean} (95 % interval {low} to {high})"
    return (Cause("method", f"{change}: {method}") if method else Cause("time", change),)


def _render_spec_change(old: Figure, new: Figure, before: Catalogue, after: Catalogue) -> str:
    job = new.job
    if job.kind == "published":
        return "the published table was edited" if old.time != new.time else ""
    of_model: tuple[str, ...] = _WHOLE_SPEC
    of_machine: tuple[str, ...] = _WHOLE_SPEC
    if job.kind == "measured":
        of_model = _LENGTH_OF_TRAINING if job.mode == "training" else ()
        of_machine = _SIZE_OF_MACHINE
    model, machine = job.workload, job.hardware
    changes = (
        changed_keys(before.models[model], after.models[model], of_model),
        changed_keys(before.hardware[machine], after.hardware[machine], of_machine),
    )
    return ", ".join(filter(None, changes))


def _render_price_change(old: Figure, new: Figure, before: Catalogue, after: Catalogue) -> str:
    if old.price is None or new.price is None:
        return _render_addition_or_removal(old.price, new.price)
    earlier, later = before.prices[old.price], after.prices[new.price]
    keys = changed_keys(earlier, later)
    days = "" if earlier.id == later.id else f", {earlier.as_of} → {later.as_of}"
    return f"{keys}{days}" if keys else ""


def _render_addition_or_removal(old_price: str | None, new_price: str | None) -> str:
    if new_price:
        return f"{new_price} added"
    return f"{old_price} removed" if old_price else ""


def data_changes(before: Catalogue, after: Catalogue) -> tuple[str, ...]:
    """Sentences on changed devices and tables of measured speeds, from which predictions learn."""
    lines = [*_changed_specs("device", before.devices, after.devices)]
    for name in sorted({*before.observations, *after.observations}):
        title, tables = f"observations {name}", (before.observations, after.observations)
        old_table, new_table = (table.get(name) for table in tables)
        lines += _spec_lines(title, old_table, new_table)
        if old_table and new_table:
            contents = (before.table_contents(old_table), after.table_contents(new_table))
            if contents[0] != contents[1]:
                lines.append(f"{title}: {', '.join(_changed_files(*contents))}")
    return tuple(lines)


def _changed_files(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            counts = (len(side.get(name, b"").splitlines()) - 1 for side in (old, new))
            yield f"{name} changed, {' → '.join(f'{max(count, 0):,}' for count in counts)} rows"


def spec_changes(
    before: Catalogue, after: Catalogue, costs: Iterable[ChangedCost]
) -> Iterator[str]:
    """Yield a sentence for each change of a spec or price that ``costs`` does not show.

    The sentences are about added or removed models, machines and studies, and about changed prices
    of machines and APIs. A machine's price is left out if a cost in ``costs`` was computed from it.
    """
    for title, old, new in (
        ("model", before.models, after.models),
        ("machine", before.hardware, after.hardware),
        ("study", before.studies, after.studies),
    ):
        yield from (f"{title} {name} added" for name in sorted(new.keys() - old.keys()))
        yield from (f"{title} {name} removed" for name in sorted(old.keys() - new.keys()))
    listed = {side.price for cost in costs for side in (cost.before, cost.after) if side}
    old_prices, new_prices = (
        {name: price for name, price in side.prices.items() if name not in listed}
        for side in (before, after)
    )
    yield from _changed_specs("price", old_prices, new_prices)
    yield from _changed_specs("API", before.apis, after.apis)


def _changed_specs(
    kind: str, old: Mapping[str, NamedSpec], new: Mapping[str, NamedSpec]
) -> Iterator[str]:
    for name in sorted({*old, *new}):
        yield from _spec_lines(f"{kind} {name}", old.get(name), new.get(name))


def _spec_lines(title: str, old: NamedSpec | None, new: NamedSpec | None) -> Iterator[str]:
    if old is None or new is None:
        yield f"{title} {'added' if new else 'removed'}"
    elif keys := changed_keys(old, new):
        yield f"{title}: {keys}"


def _step_time_change(*results: Result) -> TimeChange:
    rounds = min(round_count(result.measurement) for result in results)
    before, after = (
        Bounded(summary.interval.low, summary.mean, summary.interval.high)
        for summary in map(summary_of, results)
    )
    return time_change(before, after, rounds=rounds)


def changed_keys(before: BaseModel, after: BaseModel, within: tuple[str, ...] = _WHOLE_SPEC) -> str:
    """Describe the keys that differ between two specs (``amount 0.9 → 0.8``); empty if none differ.

    Names and sources are not compared. ``within`` has prefixes of the keys to compare.
    """
    if before == after:
        return ""
    old, new = _cached_scalars(Identity(before)), _cached_scalars(Identity(after))
    changes = (
        f"{key} {_value(old.get(key))} → {_value(new.get(key))}"
        for key in {**old, **new}
        if old.get(key) != new.get(key) and key.startswith(within)
    )
    return render_some(changes, _MOST_KEYS)


# Many costs depend on one spec.
@lru_cache(maxsize=64)
def _cached_scalars(spec: Identity[BaseModel]) -> Mapping[str, Any]:
    return dict(_scalars_by_path(spec.value.model_dump()))


def _scalars_by_path(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if path or key not in _DESCRIPTIVE:
                yield from _scalars_by_path(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _scalars_by_path(item, f"{path}[{index}]")
    else:
        yield path, value


def _value(value: Any) -> str:
    if value is None:
        return "—"
    return plain(value) if isinstance(value, Decimal) and value.is_finite() else describe(value)

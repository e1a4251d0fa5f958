"""The figures of pages that are no cost, of two revisions: which of them come out otherwise.

Each kind is one function from a side to typed rows; a row says what its figure is of, the figure in
words, and what that follows from apart from a measured time. Another time is told with the cost or
the result that it changes, and by `changes` alone, which knows what can be said of it; so is what
follows from such a time and from nothing else that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Literal

from epochcost.analysis.arithmetic import arithmetic_of, step_parts
from epochcost.analysis.difference.revision import Snapshot
from epochcost.analysis.difference.sides import Side
from epochcost.analysis.emissions import MachineEnergy, energy_by_machine, energy_goal
from epochcost.analysis.phases import timed_decoders
from epochcost.analysis.priced_jobs import GOAL_WORDS, machine_words
from epochcost.analysis.roofline import AchievedRate, achieved_rates, roof_of
from epochcost.analysis.rows import group_by
from epochcost.analysis.served_tokens import served_decoders
from epochcost.analysis.tokens import USUAL, serving_offers
from epochcost.cost import recompute
from epochcost.cost.energy import EnergyReading
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.units import (
    kilograms,
    kilowatt_hours,
    memory,
    money,
    money_range,
    scientific,
    share,
)

Kind = Literal[
    "published figure",
    "energy and CO2",
    "share of peaks",
    "step over PyTorch's",
    "size of a model",
    "cost of tokens",
    "rate behind an engine",
    "price of an API",
]
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one revision; ``follows`` is equal where only a time can have changed it."""

    kind: Kind
    what: str
    words: str
    follows: Hashable


@dataclass(frozen=True, slots=True)
class ChangedFigure:
    """A figure that stands on both sides and is shown otherwise on each."""

    kind: Kind
    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Both revisions: a kind is looked at where what it follows from differs between them."""

    before: Snapshot
    after: Snapshot
    one: Side
    other: Side

    def machines(self, of: Callable[[Side, Hardware], object]) -> frozenset[str]:
        """The machines of both for which something differs."""
        old, new = self.one.catalogue.hardware, self.other.catalogue.hardware
        return frozenset(
            name for name in {*old} & {*new} if of(self.one, old[name]) != of(self.other, new[name])
        )

    @property
    def counted(self) -> frozenset[str]:
        """The models of both whose operations, or the bytes of whose step, may be others."""
        old, new = self.one.catalogue.models, self.other.catalogue.models
        return frozenset(
            name
            for name in {*old} & {*new}
            if self.before.work_of(name) != self.after.work_of(name)
            and _counts(self.before, old[name]) != _counts(self.after, new[name])
        )


def _counts(snapshot: Snapshot, model: Model) -> tuple[object, ...]:
    training = model.training
    step = training and (training.optimizer, training.freeze, training.batch_sizes[0])
    return snapshot.graph_of(model), model.dimensions, step


def changed_figures(pair: Pair) -> Iterator[ChangedFigure]:
    """All figures that are shown otherwise, and not because of a time alone, kind by kind."""
    for figures in _KINDS:
        old = {figure.what: figure for figure in figures(pair, pair.one)}
        for figure in figures(pair, pair.other) if old else ():
            was = old.get(figure.what, figure)
            if was.words != figure.words and was.follows != figure.follows:
                yield ChangedFigure(figure.kind, figure.what, was.words, figure.words)


def _published(pair: Pair, side: Side) -> Iterator[Figure]:
    """The figures of published tables, as our recomputation has them."""
    one, other = pair.one.catalogue, pair.other.catalogue
    if (one.published, one.prices) == (other.published, other.prices):
        return
    for source in side.catalogue.published.values():
        for row in recompute(source, side.catalogue.prices):
            for check in row.checks:
                said = row.timing.id if row.timing else source.title
                words = f"{check.our_digits} {check.claim.unit} ({check.outcome})"
                what = f"{source.id}, {said}: {check.claim.label}"
                yield Figure("published figure", what, words, words)


def _energies(pair: Pair, side: Side) -> Iterator[Figure]:
    """What jobs draw and emit; power that a meter read is measured, as times are."""
    machines = pair.machines(_power)
    for workload, rows in side.rows.items():
        goal = energy_goal(rows)
        mine = [
            row
            for row in rows
            if row.observed.machine.hardware in machines and row.observed.kind != "predicted"
        ]
        for one in energy_by_machine(side.catalogue, mine, goal):
            what = f"{workload}, {GOAL_WORDS[goal]} on {machine_words(one.row.observed.machine)}"
            yield Figure("energy and CO2", what, *_energy(one))


def _power(side: Side, machine: Hardware) -> tuple[object, ...]:
    """What the energy of work on a machine follows from."""
    owned = [price.owned for price in side.catalogue.prices_of(machine.id)]
    return machine.busy_watts, machine.accelerators, machine.vcpus, owned, side.catalogue.grids


def _energy(one: MachineEnergy) -> tuple[str, Hashable]:
    """The figure in words, and what it follows from."""
    if one.least is None or one.most is None:
        return f"unknown: {one.unknown}", None
    ends = (one.least, one.most)
    emitted = " to ".join(f"{kilograms(end.kg_co2e)} ({end.grid.name})" for end in ends)
    power = one.least.power
    intensities = tuple(end.pue * end.grid.kg_co2e_per_kwh for end in ends)
    follows = (None if isinstance(power, EnergyReading) else power, intensities)
    return f"{kilowatt_hours(one.least.machines_kwh)}, {emitted} of CO2 equivalent", follows


def _shares(pair: Pair, side: Side) -> Iterator[Figure]:
    """What work achieves of the peaks of specs; what hosts did at most is a result like others."""
    machines, models = pair.machines(_roofs), pair.counted
    timed = {
        id(row.observed): row.observed
        for workload, rows in side.rows.items()
        for row in rows
        if workload in models or row.observed.machine.hardware in machines
        if row.observed.kind != "predicted"
    }
    on_machine = group_by(timed.values(), lambda one: one.machine.hardware)
    for name, observed in on_machine.items():
        for one in achieved_rates(side.inputs, side.catalogue.hardware[name], observed):
            seen = one.observed
            what = f"{seen.workload.id}, {seen.mode} on {machine_words(seen.machine)}"
            yield Figure("share of peaks", what, *_share(one))


def _roofs(_: Side, machine: Hardware) -> tuple[object, ...]:
    return roof_of(machine, "cpu"), roof_of(machine, "cuda")


def _share(one: AchievedRate) -> tuple[str, Hashable]:
    """The shares in words, and what they follow from: the roof, and what an example takes."""
    parts = {"the FP32 peak": one.of_peak, "the bandwidth": one.of_bandwidth}
    words = [f"{one.flops_per_second / 1e9:.3g} GFLOP/s"]
    words += [f"{'unknown' if part is None else share(part)} of {of}" for of, part in parts.items()]
    assert one.observed.step is not None, "what is achieved was timed"
    examples = one.observed.batch_size / float(one.observed.step.mean)
    work = f"{one.flops_per_second / examples:.{_DIGITS}g}"
    return ", ".join(words), (one.roof, work)


def _ratios(pair: Pair, side: Side) -> Iterator[Figure]:
    """How our training step compares with PyTorch's, where either side knows."""
    keys = {
        (model, size, threads)
        for each in (pair.one, pair.other)
        for model, batches in each.ratios.worst.items()
        for size, counts in batches.items()
        for threads in counts
    }
    for model, size, threads in sorted(keys) if pair.one.ratios != pair.other.ratios else ():
        value = side.ratios.worst.get(model, {}).get(size, {}).get(threads)
        words = "not compared" if value is None else f"{value:.2f} times"
        what = f"{model}, batch {size}, {threads} threads"
        yield Figure("step over PyTorch's", what, words, value)


def _sizes(pair: Pair, side: Side) -> Iterator[Figure]:
    """What a model's graph counts to, and what a step of its training moves at least."""
    for name in sorted(pair.counted):
        words = _size(side, side.catalogue.models[name])
        yield Figure("size of a model", name, words, words)


def _size(side: Side, model: Model) -> str:
    if model.graph is None:
        return "not counted"
    counted = arithmetic_of(side.catalogue.graph_path(model), model.dimensions)
    if counted is None:
        return "not counted"
    words = [
        f"{counted.parameters:,} parameters",
        f"{scientific(counted.forward_flops)} operations forward",
    ]
    size = model.training.batch_sizes[0] if model.training else 1
    if parts := step_parts(counted, model, size):
        moved = memory(sum(part.least_bytes for part in parts))
        words.append(f"a step moves at least {moved}")
    return ", ".join(words)


def _tokens(_: Pair, side: Side) -> Iterator[Figure]:
    """A million tokens of usual requests on machines that are never idle; times of phases too."""
    for offer in serving_offers(side.catalogue, timed_decoders(side.inputs), USUAL):
        where = f"{machine_words(offer.decoder.machine)}, {offer.price.id}"
        what = f"{offer.decoder.model} in {offer.decoder.precision} on {where}"
        full = offer.full
        words = f"{money(full.mean, full.currency)} a million"
        if full.low != full.high:
            words += f", {money_range(full.low, full.high, full.currency)}"
        yield Figure("cost of tokens", what, words, words)


def _rates(_: Pair, side: Side) -> Iterator[Figure]:
    """The highest rate at which a decoder behind an engine keeps its bounds."""
    for one in served_decoders(side.inputs):
        highest = f"{float(one.highest.per_second):.3g} requests/s" if one.highest else "no rate"
        what = f"{one.model} in {one.precision} on {machine_words(one.machine)}"
        yield Figure("rate behind an engine", what, highest, highest)


def _apis(pair: Pair, side: Side) -> Iterator[Figure]:
    """What APIs ask for a million tokens."""
    same = pair.one.catalogue.apis == pair.other.catalogue.apis
    for api in () if same else side.catalogue.apis.values():
        read, written = (
            money(one, api.currency) for one in (api.input_per_million, api.output_per_million)
        )
        words = f"{read} read, {written} written"
        yield Figure("price of an API", api.id, words, words)


_KINDS: tuple[Callable[[Pair, Side], Iterator[Figure]], ...] = (
    _published,
    _energies,
    _shares,
    _ratios,
    _sizes,
    _tokens,
    _rates,
    _apis,
)

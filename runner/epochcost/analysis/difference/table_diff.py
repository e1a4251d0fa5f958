"""Compare the tables of costs and times of two revisions of a project.

Costs of a job under the same price plan are compared, even if the plan has a newer price.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, Literal

from epochcost.analysis.difference.revision import Revision
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Goal
from epochcost.analysis.rows import GOAL_NAMES
from epochcost.analysis.table.lines import Values, values_of
from epochcost.analysis.token_answers import TokenMarket, usual_answers
from epochcost.analysis.tokens import Requests, ServingOffer
from epochcost.specs.catalogue import supersedes
from epochcost.specs.price import Price
from epochcost.statistics import group_by
from epochcost.units import plain

# Columns of the table that a job and its line share.
_SHARED = ("workload", "mode", "batch_size", "device", "hardware", "host", "variant", "scenario")


@dataclass(frozen=True, slots=True)
class Job:
    """What a figure is about: a workload, a machine and a goal (an epoch, say).

    ``variant`` describes settings other than the defaults, ``scenario`` a load of requests.
    ``kind`` is "measured", "published", "predicted" or "estimated". ``source`` describes the origin
    of an unmeasured figure. If ``threads`` is 0, all cores are used. Estimates have no batch size.
    """

    workload: str
    mode: str
    batch_size: int | None
    device: str
    hardware: str
    host: str | None
    variant: str | None
    scenario: str | None
    goal: Goal | Literal["tokens"]
    kind: str
    source: str
    threads: int

    @property
    def work(self) -> tuple[object, ...]:
        """The values of all fields except ``goal``."""
        return tuple(getattr(self, name) for name in self.__slots__ if name != "goal")


@dataclass(frozen=True, slots=True)
class Figure:
    """The cost of a job under one price plan: a line of the table."""

    job: Job
    values: Values

    @classmethod
    def of(cls, values: Values, goal: Goal | Literal["tokens"], threads: int = 0) -> Figure:
        """Make the figure for one goal of a table's line; ``values`` are its cells by column."""
        shared: dict[str, Any] = {column: values.get(column) for column in _SHARED}
        kind = str(values["figure"]).partition(",")[0]
        source = _unmeasured_source(values, kind)
        return cls(Job(**shared, goal=goal, kind=kind, source=source, threads=threads), values)

    @property
    def cost(self) -> Decimal | None:
        """Cost of the job; None without a known price."""
        return self._number("")

    @property
    def ends(self) -> tuple[Decimal, Decimal] | None:
        """The low and the high end of the cost, equal without a range; None without a cost."""
        low, high = self._number("_low"), self._number("_high")
        if self.cost is None:
            return None
        return (self.cost, self.cost) if low is None or high is None else (low, high)

    def _number(self, end: str) -> Decimal | None:
        value = self.values.get(f"{self.job.goal}_cost{end}")
        return value if isinstance(value, Decimal) else None

    @property
    def time(self) -> object:
        """Seconds of the job as a Decimal; None if the line has no time."""
        return self.values.get(f"{self.job.goal}_time_s")

    @property
    def price(self) -> str | None:
        """Id of the price plan; None without a price."""
        return self.text("price") or None

    @property
    def currency(self) -> str:
        """Currency of the cost."""
        return self.text("currency")

    @property
    def assumed(self) -> bool:
        """Whether the price is an assumption."""
        return self.text("figure").endswith("price assumed")

    def text(self, column: str) -> str:
        """The text in a column of this figure's line; empty if the line has no such column."""
        return str(self.values.get(column) or "")


Pair = tuple[Figure | None, Figure | None]


def compare_tables(
    before: Revision, after: Revision
) -> tuple[list[Pair], tuple[Job, ...], tuple[Job, ...]]:
    """Compare costs and times of two revisions, and the costs of tokens, which no table has.

    Returns pairs of figures with different costs or times, then the jobs that are predicted only
    after or only before, without full trainings. A pair has a job's figures under one price plan,
    before and after. If only one revision has the plan, the other side is the job's figure without
    a price, or None without such a figure.
    """
    old, new = (
        group_by((*figures_of(side), *tokens), lambda figure: figure.job)
        for side, tokens in zip((before, after), _token_figures(before, after), strict=True)
    )
    pairs = (
        pair
        for job, figures in new.items()
        if job in old
        for pair in _pair_by_plan(old[job], figures, before, after)
    )
    added, removed = (
        tuple(
            job
            for job in jobs
            if job not in others and job.kind == "predicted" and job.goal != "full"
        )
        for jobs, others in ((new, old), (old, new))
    )
    return [pair for pair in pairs if _differs(*pair)], added, removed


def _token_figures(before: Revision, after: Revision) -> tuple[list[Figure], list[Figure]]:
    """Costs of a million tokens, before and after, of typical requests to each decoder.

    Machines whose costs cannot have changed are left out. Only predicted times count, because
    changed measured times are listed as changed results.
    """
    old, new = before.catalogue, after.catalogue
    machines = {*old.hardware, *new.hardware}
    if TokenMarket(before.inputs).evidence == TokenMarket(after.inputs).evidence:
        machines = {
            name
            for name in machines
            if old.hardware.get(name) != new.hardware.get(name)
            or old.prices_of(name) != new.prices_of(name)
        }
    return [*_tokens(before.inputs, machines)], [*_tokens(after.inputs, machines)]


def _tokens(inputs: Inputs, machines: Collection[str]) -> Iterator[Figure]:
    specs = inputs.catalogue.hardware.items()
    hardware = {name: spec for name, spec in specs if name in machines}
    catalogue = replace(inputs.catalogue, hardware=hardware)
    market = TokenMarket(replace(inputs, catalogue=catalogue, stored=(), reported={}))
    for name, answer in usual_answers(market).items() if hardware else ():
        yield from (_token_figure(name, answer.requests, offer) for offer in answer.offers)


def _token_figure(model: str, requests: Requests, offer: ServingOffer) -> Figure:
    deployed, cost = offer.deployment, offer.per_million
    values: Values = {
        "workload": model,
        "mode": "tokens",
        "device": deployed.machine.device,
        "hardware": deployed.machine.hardware,
        "scenario": f"{plain(requests.per_second)} request/s of {requests.lengths_text}",
        "software": f"{deployed.software}, {deployed.precision}",
        "figure": offer.mark,
        "price": offer.price.id,
        "currency": cost.currency,
        "step_s": offer.capacity.request.mean,
        "tokens_time_s": offer.capacity.request.mean,
        "tokens_cost": cost.mean,
        "tokens_cost_low": cost.low,
        "tokens_cost_high": cost.high,
    }
    return Figure.of(values, "tokens")


def figures_of(revision: Revision) -> Iterator[Figure]:
    """Yield the figures of a revision's published table: costs, and times if a cost is unknown."""
    stored = revision.stored
    for line in revision.lines:
        values = values_of(line)
        result = stored.get(str(values["evidence"]))
        threads = result.result.trial.session.threads if result else 0
        for goal in GOAL_NAMES:
            unpriced = values.get("unpriced_because") and f"{goal}_time_s" in values
            if unpriced or f"{goal}_cost" in values:
                yield Figure.of(values, goal, threads)


def _unmeasured_source(values: Values, kind: str) -> str:
    """The origin of an unmeasured figure, in words that begin with ``kind``; empty if measured."""
    page = PurePosixPath(str(values.get("evidence")))
    match kind:
        case "published" if page.parent.name == "sources":
            return f"published: {page.stem}, {values['software']}"
        case "published":
            return f"published: {values['software']}, {values['precision']}"
        case "predicted":
            return f"predicted: {values['software']}"
        case _:
            return "" if kind == "measured" else kind


def _pair_by_plan(
    old: Sequence[Figure], new: Sequence[Figure], before: Revision, after: Revision
) -> Iterator[Pair]:
    """Pair the figures of a job in two revisions by price plan, as `compare_tables` describes.

    Figures at a superseded price are left out, unless the price is superseded in both revisions.
    """
    unmatched, unpriced = list(old), [figure for figure in old if figure.price is None]
    for figure in new:
        match = _same_plan(figure, unmatched, before.catalogue.prices, after.catalogue.prices)
        if match is not None:
            unmatched.remove(match)
            yield match, figure
        elif figure.price is not None and _is_current(figure):
            yield next(iter(unpriced), None), figure
    for figure in unmatched:
        if figure.price is not None and _is_current(figure):
            yield figure, next((each for each in new if each.price is None), None)


def _same_plan(
    figure: Figure, unmatched: Iterable[Figure], old: Mapping[str, Price], new: Mapping[str, Price]
) -> Figure | None:
    current = _is_current(figure)
    alike = [each for each in unmatched if _is_current(each) == current]
    by_id = next((each for each in alike if each.price == figure.price), None)
    if by_id is not None or figure.price is None or not current:
        return by_id
    newer = new[figure.price]
    prices = ((each, old[each.price]) for each in alike if each.price is not None)
    return next((each for each, older in prices if continues(newer, older, new)), None)


def continues(newer: Price, older: Price, prices: Mapping[str, Price]) -> bool:
    """Whether ``newer`` supersedes ``older``, or is ``older`` under a new id; ``prices`` by id."""
    if older.id in prices:
        return supersedes(newer, older)
    return supersedes(newer, older) or newer == older.model_copy(update={"id": newer.id})


def _is_current(figure: Figure) -> bool:
    return figure.values.get("price_current") != "no"


def _differs(before: Figure | None, after: Figure | None) -> bool:
    if before is None or after is None:
        return True
    if (before.cost, before.currency) != (after.cost, after.currency):
        return True
    # Another predicted time with the same bill is no news.
    return before.time != after.time and (before.job.kind != "predicted" or before.cost is None)

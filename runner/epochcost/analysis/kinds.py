"""The kinds of job that readers come with, and for each the workload that answers for it.

A kind of training is told from the words of a workload's task. Each kind is answered by one
workload, the one that most machines have a figure for: costs of different workloads are never
pooled. Serving and bulk inference are kinds of their own: requests are answered as they come, a
bulk in full batches.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from epochcost.analysis.observations import Goal, Workload
from epochcost.analysis.rows import Answer, Row, answer, on_frontier
from epochcost.analysis.serving import ServingRow
from epochcost.cost import Candidate, Estimate, cheapest, frontier

# How a job is done: a training; inference for requests one by one, or of a bulk in full batches.
Way = Literal["training", "requests", "bulk"]
_TASKS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "image": re.compile(r"\b(image|vision|video|segmentation|cifar|imagenet)", re.IGNORECASE),
        "language": re.compile(r"\b(language|translation|text generation)", re.IGNORECASE),
    }
)
_IMAGE, _OTHER = "image", "other"
_TITLES: Mapping[str, str] = MappingProxyType(
    {
        _IMAGE: "Train an image model",
        "language": "Train a language model",
        _OTHER: "Train another model",
    }
)
_SERVE = "Serve a model"
_BULK = "Run a million inferences in bulk"
_BULK_IMAGES = "Label a million images in bulk"


@dataclass(frozen=True, slots=True)
class ServingAnswer:
    """The servers of one model at one bound: the cheapest million, the shortest 99th percentile.

    Where the cheapest has an assumed price, ``listed`` is the cheapest at somebody's price list.
    ``frontier`` are those that no other beats in both, quickest first.
    """

    model: str
    cheapest: ServingRow
    listed: ServingRow | None
    quickest: ServingRow
    frontier: tuple[ServingRow, ...]
    machines: int


def one_by_one(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows of inference in which no example waits for another."""
    return tuple(row for row in _inferences(rows) if row.observed.batch_size == 1)


def in_bulk(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows of inference in batches of several examples."""
    return tuple(row for row in _inferences(rows) if row.observed.batch_size > 1)


def _inferences(rows: Iterable[Row]) -> Iterable[Row]:
    return (row for row in rows if row.mode == "inference")


def serving_answer(rows: Iterable[ServingRow]) -> ServingAnswer | None:
    """The model and bound that most machines serve within; None where no priced server keeps one.

    Different bounds are different jobs and are not compared; of equals the first by name.
    """
    groups: defaultdict[tuple[str, str], list[Candidate[ServingRow]]] = defaultdict(list)
    for row in rows:
        if (found := _candidate(row)) is not None:
            groups[row.model, row.load].append(found)
    if not groups:
        return None
    (model, _), kept = max(sorted(groups.items(), key=_name), key=lambda one: _machines(one[1]))
    return _service(model, kept)


def _candidate(row: ServingRow) -> Candidate[ServingRow] | None:
    """A priced server that kept its bound, its 99th percentile as the time."""
    if row.bound_seconds is None or row.run is None or not isinstance(row.million, Estimate):
        return None
    seconds = Decimal(row.run.latency.p99_nanoseconds) / 10**9
    return Candidate(row, seconds, row.million)


def _service(model: str, candidates: Sequence[Candidate[ServingRow]]) -> ServingAnswer:
    currency = candidates[0].cost.currency
    same = [one for one in candidates if one.cost.currency == currency]
    best = cheapest(same)
    assert best is not None, "a service has a candidate"
    listed = cheapest(one for one in same if not one.key.assumed)
    between = frontier(same)
    return ServingAnswer(
        model=model,
        cheapest=best.key,
        listed=listed.key if listed and best.key.assumed else None,
        quickest=between[0].key,
        frontier=tuple(one.key for one in between),
        machines=_machines(same),
    )


def _machines(candidates: Iterable[Candidate[ServingRow]]) -> int:
    return len({one.key.machine for one in candidates})


def _name(group: tuple[tuple[str, str], object]) -> tuple[str, str]:
    return group[0]


_ROWS: Mapping[Way, Callable[[Iterable[Row]], tuple[Row, ...]]] = MappingProxyType(
    {"requests": one_by_one, "bulk": in_bulk}
)


@dataclass(frozen=True)
class JobKind:
    """A kind of job, ``of`` so many workloads with a figure for its goal.

    ``workload`` answers for it, and ``frontier`` are its rows that no other beats in both time and
    cost, fastest first; None and empty where no workload of the kind has a figure. Where servers
    were measured at a bound, ``serving_answer`` answers and no row does.
    """

    title: str
    way: Way
    goal: Goal
    of: int
    workload: Workload | None = None
    answer: Answer | None = None
    rows: tuple[Row, ...] = ()
    frontier: tuple[Row, ...] = ()
    service: ServingAnswer | None = None


@dataclass(frozen=True)
class GoalAnswer:
    """One workload's answer to one way of using it."""

    way: Way
    goal: Goal
    answer: Answer


@dataclass(frozen=True)
class _Timed:
    """A workload that may answer for a kind: its rows of that kind, and how many it has at all."""

    workload: Workload
    rows: tuple[Row, ...]
    answer: Answer
    figures: int


def family(workload: Workload) -> str:
    """`image`, `language` or `other`: the first whose words the task has, else the name."""
    for said in (workload.task, workload.name):
        for name, words in _TASKS.items():
            if words.search(said):
                return name
    return _OTHER


def goal_answers(rows: Sequence[Row], answers: Mapping[Goal, Answer]) -> tuple[GoalAnswer, ...]:
    """What a workload answers: its training's goals, then a million one by one and in bulk."""
    trained: tuple[Goal, ...] = ("epoch", "full")
    training = (GoalAnswer("training", goal, answers[goal]) for goal in trained if goal in answers)
    return (*training, *_inference(rows))


def _inference(rows: Sequence[Row]) -> Iterator[GoalAnswer]:
    for way, select in _ROWS.items():
        if found := answer(select(rows), "million"):
            yield GoalAnswer(way, "million", found)


def job_kinds(
    workloads: Iterable[Workload],
    rows_of: Callable[[Workload], tuple[Row, ...]],
    answers_of: Callable[[Workload], Mapping[Goal, Answer]],
    serving: Iterable[ServingRow] = (),
) -> tuple[JobKind, ...]:
    """Training by family, serving, bulk; other families only where a workload is of them."""
    listed = tuple(workloads)
    kinds: list[JobKind] = []
    for name, title in _TITLES.items():
        mine = [one for one in listed if family(one) == name and "full" in answers_of(one)]
        rows = [(one, rows_of(one)) for one in mine]
        timed = [_Timed(one, all_, answers_of(one)["full"], len(all_)) for one, all_ in rows]
        if timed or name != _OTHER:
            kinds.append(_kind(title, "training", timed))
    with_rows = [(one, rows_of(one)) for one in listed]
    return (*kinds, _requests(listed, with_rows, serving), _bulk(with_rows))


def _requests(
    workloads: Sequence[Workload],
    with_rows: Iterable[tuple[Workload, tuple[Row, ...]]],
    serving: Iterable[ServingRow],
) -> JobKind:
    """Servers at their bound; where there are none, one by one."""
    rows = tuple(serving)
    found = serving_answer(rows)
    if found is None:
        return _kind(_SERVE, "requests", list(_inferring(with_rows, "requests")))
    models = {row.model for row in rows if row.bound_seconds is not None}
    workload = next(one for one in workloads if one.is_model and one.id == found.model)
    return JobKind(_SERVE, "requests", "million", len(models), workload, service=found)


def _bulk(with_rows: Iterable[tuple[Workload, tuple[Row, ...]]]) -> JobKind:
    timed = list(_inferring(with_rows, "bulk"))
    images = bool(timed) and family(max(timed, key=_preference).workload) == _IMAGE
    return _kind(_BULK_IMAGES if images else _BULK, "bulk", timed)


def _inferring(with_rows: Iterable[tuple[Workload, tuple[Row, ...]]], way: Way) -> Iterator[_Timed]:
    for workload, rows in with_rows:
        mine = _ROWS[way](rows)
        if found := answer(mine, "million"):
            yield _Timed(workload, mine, found, len(rows))


def _kind(title: str, way: Way, timed: Sequence[_Timed]) -> JobKind:
    goal: Goal = "full" if way == "training" else "million"
    if not timed:
        return JobKind(title, way, goal, 0)
    shown = max(timed, key=_preference)
    between = on_frontier(shown.rows, goal)
    return JobKind(title, way, goal, len(timed), shown.workload, shown.answer, shown.rows, between)


def _preference(one: _Timed) -> tuple[bool, int, bool, int]:
    """Priced, on the most machines, of images (one is a plain unit of work), in the most ways."""
    image = family(one.workload) == _IMAGE
    return one.answer.cheapest is not None, one.answer.machines, image, one.figures

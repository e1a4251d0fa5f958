"""The kinds of job that readers come with, and for each the workload that answers for it.

A kind is told from the words of a workload's task. It is answered by one workload, the one that
most machines have a figure for: costs of different workloads are never pooled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from epochcost.report.answers import Answer, on_frontier
from epochcost.report.rows import Goal, Row
from epochcost.report.subjects import Subject

_TASKS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "image": re.compile(r"\b(image|vision|video|segmentation|cifar|imagenet)", re.IGNORECASE),
        "language": re.compile(r"\b(language|translation|text generation)", re.IGNORECASE),
    }
)
_OTHER = "other"
_TITLES: Mapping[str, str] = MappingProxyType(
    {
        "image": "Train an image model",
        "language": "Train a language model",
        _OTHER: "Train another model",
        "serve": "Serve a model",
    }
)


@dataclass(frozen=True)
class JobKind:
    """A kind of job, ``of`` so many workloads with a figure for its goal.

    ``subject`` answers for it, and ``frontier`` are its rows that no other beats in both time and
    cost, fastest first; None and empty where no workload of the kind has a figure.
    """

    title: str
    goal: Goal
    of: int
    subject: Subject | None = None
    answer: Answer | None = None
    rows: tuple[Row, ...] = ()
    frontier: tuple[Row, ...] = ()


def family(subject: Subject) -> str:
    """`image`, `language` or `other`: the first whose words the task has, else the name."""
    for said in (subject.task, subject.name):
        for name, words in _TASKS.items():
            if words.search(said):
                return name
    return _OTHER


def job_kinds(
    subjects: Iterable[Subject],
    rows_of: Callable[[Subject], tuple[Row, ...]],
    answers_of: Callable[[Subject], Mapping[Goal, Answer]],
) -> tuple[JobKind, ...]:
    """Training by family, then serving; other families only where a workload is of them."""
    listed = tuple(subjects)
    kinds: list[JobKind] = []
    for name, title in _TITLES.items():
        goal: Goal = "million" if name == "serve" else "full"
        mine = [one for one in listed if name in {"serve", family(one)}]
        timed = [one for one in mine if goal in answers_of(one)]
        if timed or name != _OTHER:
            kinds.append(_kind(title, goal, timed, rows_of, answers_of))
    return tuple(kinds)


def _kind(
    title: str,
    goal: Goal,
    timed: list[Subject],
    rows_of: Callable[[Subject], tuple[Row, ...]],
    answers_of: Callable[[Subject], Mapping[Goal, Answer]],
) -> JobKind:
    if not timed:
        return JobKind(title, goal, 0)

    def most(subject: Subject) -> tuple[bool, int, int]:
        """Priced, on the most machines, in the most ways."""
        found = answers_of(subject)[goal]
        return found.cheapest is not None, found.machines, len(rows_of(subject))

    shown = max(timed, key=most)
    rows = rows_of(shown)
    return JobKind(
        title, goal, len(timed), shown, answers_of(shown)[goal], rows, on_frontier(rows, goal)
    )

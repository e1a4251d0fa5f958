"""A job on CPUs beside the same job on a GPU: how many times the time, and how many the cost.

Woolf's question of 2017: below 1 in cost, the cheaper CPU more than makes up for the longer time.
Compared is one batch size, at each machine's cheapest current plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from epochcost.analysis.observations import Goal, in_floats
from epochcost.analysis.rows import Row, answer, grouped
from epochcost.statistics import Bounded, ratio


@dataclass(frozen=True)
class OnCpu:
    """The job on one machine's CPU; ``time`` and ``cost`` are over those of the GPU."""

    row: Row
    time: Bounded
    cost: Bounded


@dataclass(frozen=True)
class Relative:
    """The cheapest GPU for a goal, and every CPU at its batch size, cheapest first."""

    goal: Goal
    gpu: Row
    cpus: tuple[OnCpu, ...]


def cpu_against_gpu(rows: Sequence[Row], goal: Goal) -> Relative | None:
    """The comparison of one workload; None unless both kinds of machine have a cost for it."""
    on_gpu = [row for row in rows if row.observed.machine.device == "cuda"]
    found = answer(on_gpu, goal)
    if found is None or found.cheapest is None:
        return None
    gpu = found.cheapest.row
    same = [
        row
        for row in rows
        if row.observed.machine.device == "cpu"
        and row.observed.batch_size == gpu.observed.batch_size
    ]
    machines = grouped(same, lambda row: row.observed.machine).values()
    cpus = [one for mine in machines if (one := _beside(mine, gpu, goal))]
    ordered = sorted(cpus, key=lambda one: one.cost.mean)
    return Relative(goal, gpu, tuple(ordered)) if ordered else None


def _beside(rows: Sequence[Row], gpu: Row, goal: Goal) -> OnCpu | None:
    found = answer(rows, goal)
    if found is None or found.cheapest is None:
        return None
    row = found.cheapest.row
    cost, its_cost = row.estimate(goal), gpu.estimate(goal)
    time, its_time = row.time(goal), gpu.time(goal)
    if not (cost and its_cost and time and its_time) or cost.currency != its_cost.currency:
        return None
    return OnCpu(
        row,
        ratio(in_floats(time), in_floats(its_time)),
        ratio(in_floats(cost), in_floats(its_cost)),
    )

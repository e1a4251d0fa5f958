"""Sweeps of batch sizes end on every machine, and for the right cause."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from epochcost.plan.sweep import (
    FailedSize,
    MeasuredSize,
    Point,
    Sweep,
    SweepEnd,
    next_size,
)
from epochcost.plan.trial import Trial

TRIAL = Trial(
    model="net",
    mode="training",
    provider="cpu",
    batch_size=1,
    seed=0,
    runtime="onnxruntime==1.31.1",
    producer="0.1.0",
    graph_sha256="a" * 64,
    spec_sha256="b" * 64,
    relative_half_width=Decimal("0.02"),
    minimum_samples=30,
    budget_seconds=Decimal(20),
)
Machine = Callable[[int], Point]


def sweep_from(first: int = 1, largest: int = 65_536) -> Sweep:
    """A made-up sweep."""
    smallest = TRIAL.model_copy(update={"batch_size": first})
    return Sweep(smallest, largest, "an epoch")


def ran(batch_size: int, seconds: float, width: float = 0.01) -> MeasuredSize:
    """A measured size; ``width`` is the interval's relative half width."""
    return MeasuredSize(batch_size, seconds * (1 - width), seconds, seconds * (1 + width))


def machine(memory: int, overhead: float = 1e-4, example: float = 1e-5) -> Machine:
    """A machine that fits some examples, with times for a step and for each example."""

    def meet(size: int) -> Point:
        return (
            ran(size, overhead + example * size)
            if size <= memory
            else FailedSize(batch_size=size, words="no memory", of_memory=True)
        )

    return meet


def explored(sweep: Sweep, meet: Machine) -> tuple[list[Point], SweepEnd]:
    """The points of a sweep in order, and its end; fails after a hundred points."""
    points: list[Point] = []
    for _ in range(100):
        found = next_size(sweep, points)
        if isinstance(found, SweepEnd):
            return points, found
        points.append(meet(found))
    raise AssertionError(f"no end after {points}")


@given(
    memory=st.integers(0, 70_000),
    first=st.integers(1, 300),
    largest=st.integers(300, 65_536),
)
def test_the_limit_of_memory_is_found(memory: int, first: int, largest: int) -> None:
    """The limit is found to a sixteenth, and no size is tried twice."""
    points, end = explored(sweep_from(first, largest), machine(memory))
    sizes = [point.batch_size for point in points]
    assert len(sizes) == len(set(sizes))
    assert all(1 <= size <= largest for size in sizes)
    held = max((p.batch_size for p in points if isinstance(p, MeasuredSize)), default=0)
    failed = [p.batch_size for p in points if isinstance(p, FailedSize)]
    if memory >= largest:
        assert end == SweepEnd("maximum", "an epoch")
        assert held == largest
    else:
        assert end.cause == "memory"
        assert held <= memory < min(failed)
        assert min(failed) - held <= max(1, held / 16)


@given(st.integers(0, 12), st.floats(1.1, 3))
def test_a_lasting_fall_ends_a_sweep(knee: int, slower: float) -> None:
    """The second slower size ends a sweep."""
    best = 2**knee

    def meet(size: int) -> Point:
        return ran(size, size * (1e-5 if size <= best else slower * 1e-5))

    points, end = explored(sweep_from(), meet)
    assert end.cause == "throughput"
    assert points[-1].batch_size == 4 * best
    assert f"batch {2 * best:,} and {4 * best:,} below" in end.reason


@given(st.lists(st.floats(0.96, 1.04), min_size=17, max_size=17))
def test_noise_is_no_fall(noise: list[float]) -> None:
    """A sweep continues if rates differ by less than a twentieth or than their intervals."""
    factors = iter(noise)

    def meet(size: int) -> Point:
        return ran(size, size * 1e-5 * next(factors), width=0.04)

    _, end = explored(sweep_from(), meet)
    assert end.cause == "maximum"


def test_a_step_beyond_all_budgets_is_not_tried() -> None:
    """A size whose step would take 64 s is not tried with a budget of 20 s."""
    points, end = explored(sweep_from(), machine(10**9, overhead=0, example=1))
    assert end.cause == "time"
    assert points[-1].batch_size == 32
    assert "batch 64" in end.reason


def test_a_sweep_tries_ordinary_trials() -> None:
    """A size of a sweep is the trial of a listed size. A sweep's id ignores its first size."""
    sweep = sweep_from()
    listed = TRIAL.model_copy(update={"batch_size": 32})
    assert sweep.at(32).id == listed.id
    assert sweep_from(16).id == sweep.id != listed.id
    other = Sweep(TRIAL.model_copy(update={"vcpus": 1}), 64, "an epoch")
    assert other.id != sweep.id
    assert other.title.endswith("at most 64 (an epoch), 1 vCPU")

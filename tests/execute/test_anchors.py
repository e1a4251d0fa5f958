"""Anchors: small works that workers really time, as many as there is time for."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.errors import ModelError
from epochcost.execute import anchors
from epochcost.execute.anchors import measure_anchors
from epochcost.graphs.profiling import profile_of_bound

BY_NAME = {(work.name, work.mode): work for work in anchors.WORKS}


def choose(monkeypatch: pytest.MonkeyPatch, *works: tuple[str, str]) -> None:
    """Have only these works."""
    chosen = tuple(BY_NAME[work] for work in works)
    monkeypatch.setattr(anchors, "WORKS", chosen)


def test_works_are_timed_in_both_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By real workers: a product as inference, attention as a whole training step."""
    choose(monkeypatch, ("products-256", "inference"), ("attention", "training"))
    product, step = measure_anchors(tmp_path, "cpu")
    assert (product.work, product.mode) == ("products-256", "inference")
    assert product.profile.flops == pytest.approx(4 * 2 * 256 * 256**2, rel=0.02)
    assert (step.work, step.mode) == ("attention", "training")
    assert step.examples_per_second < product.examples_per_second
    assert len(step.step_seconds) >= 3


def test_no_work_begins_when_the_minute_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow machine has fewer anchors, and none that waits for the others."""
    monkeypatch.setattr(anchors, "_LATEST_START_SECONDS", -1)
    assert measure_anchors(tmp_path, "cpu") == ()


def test_a_work_that_fails_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is left, the reason is told."""

    def broken(_: int) -> None:
        raise ModelError("no such work")

    bad = anchors.Work("broken", "inference", broken)  # type: ignore[arg-type]
    monkeypatch.setattr(anchors, "WORKS", (bad, BY_NAME["products-256", "inference"]))
    (kept,) = measure_anchors(tmp_path, "cpu")
    assert kept.work == "products-256"
    monkeypatch.setattr(anchors, "WORKS", (bad,))
    with pytest.raises(ModelError, match="no such work"):
        measure_anchors(tmp_path, "cpu")


@pytest.mark.parametrize("work", sorted({name for name, _ in BY_NAME}))
def test_every_work_can_be_counted(work: str) -> None:
    """Twice the examples ask for the same of each."""
    graph = BY_NAME[work, "inference"].graph
    assert profile_of_bound(graph(1)) == profile_of_bound(graph(2))

"""The parts of a training step, counted and measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.analysis.arithmetic import Arithmetic, forward_shares, step_parts
from epochcost.report.pages.page import Report
from report_project import inputs_of, make_result, write_project


def test_the_backward_pass_is_twice_the_forward_pass(report: Report) -> None:
    """At batch 32; plain SGD reads weights and gradients and writes weights: 12 bytes a number."""
    training = report.catalogue.models["net"].training
    forward, backward, update = step_parts(Arithmetic(110, 100.0, 10), training, 32)
    assert forward.flops == 3200
    assert backward.flops == 6400
    assert update.flops is None
    assert (forward.least_bytes, backward.least_bytes, update.least_bytes) == (400, 800, 1200)
    assert step_parts(None, training, 32) == ()


def test_inference_at_the_same_batch_size_is_the_forward_pass(report: Report) -> None:
    """5.05 ms of 11 ms, at batch 32; batch 128 was not served."""
    (share,) = forward_shares([one for one in report.observations if one.subject.id == "net"])
    assert share.training.batch_size == share.inference.batch_size == 32
    assert share.share.mean == pytest.approx(0.00507 / 0.011, rel=0.01)


def test_another_machine_is_no_forward_pass(tmp_path: Path) -> None:
    """Figures of different hosts are never put together."""
    results = [make_result(), make_result(mode="inference", fingerprint="beef" * 4)]
    found = Report(inputs_of(write_project(tmp_path, results))).observations
    assert forward_shares(found) == ()

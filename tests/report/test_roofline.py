"""Achieved operations per second, and the roof."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from epochcost.cost import Time
from epochcost.report.figures.roofline import roofline
from epochcost.report.pages.page import Report
from epochcost.report.roofline import achieved, roof_of
from epochcost.specs.hardware import Accelerator, Hardware

GPUS = Hardware(
    id="two",
    name="Two GPUs",
    provider="nobody",
    source="a test",
    peak_fp32_tflops=Decimal(1),
    accelerators=(
        Accelerator(
            name="g", count=2, peak_fp32_tflops=Decimal(8), memory_gb_per_second=Decimal(300)
        ),
    ),
)


def test_the_roof_is_of_the_device_and_of_all_its_chips() -> None:
    """Two GPUs of 8 TFLOP/s and 300 GB/s; a CPU's bandwidth is in no spec."""
    gpu, cpu = roof_of(GPUS, "cuda"), roof_of(GPUS, "cpu")
    assert (gpu.peak_flops, gpu.bytes_per_second) == (16e12, 600e9)
    assert (cpu.peak_flops, cpu.bytes_per_second) == (1e12, None)


def test_achieved_is_counted_operations_over_the_time(report: Report) -> None:
    """The net computes 1.34e6 operations for an example; a training step thrice that."""
    hardware = report.catalogue.hardware["local"]
    found = achieved(report.inputs, hardware, report.observations_on(hardware))
    training = next(one for one in found if one.observed.mode == "training")
    assert training.observed.batch_size == 128
    forward = 2 * (784 * 512 + 512 * 512 + 512 * 10)
    assert training.flops_per_second == pytest.approx(3 * forward * 128 / 0.03075, rel=1e-6)
    assert training.of_peak is None
    figure = roofline(found, identifier="x")
    assert figure is not None
    assert "states no FP32 peak" in figure.description
    assert "peak of the spec" not in str(figure.chart.spec())


def test_published_work_stands_below_the_roof_of_its_machine(report: Report) -> None:
    """With a peak and a bandwidth the roof has its slope, its ridge and its flat part."""
    on_box = report.observations_on(report.catalogue.hardware["box"])
    (printed,) = (one for one in on_box if one.subject.id == "net")
    assert achieved(report.inputs, GPUS, [printed]) == ()  # the source gives no steps
    timed = replace(printed, step=Time.exactly(Decimal("0.01")))
    found = achieved(report.inputs, GPUS, [timed])
    assert found[0].of_peak is not None
    assert 0 < found[0].of_peak < 1
    figure = roofline(found, identifier="x")
    assert figure is not None
    assert "peak of the spec" in str(figure.chart.spec())

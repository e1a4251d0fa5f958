"""CPUs beside a GPU."""

from __future__ import annotations

from epochcost.analysis.comparisons import cpu_against_gpu
from epochcost.report.charts.relative import cpu_against_gpu_figure
from epochcost.report.pages.page import Report


def test_cost_and_time_are_over_those_of_the_gpu(report: Report) -> None:
    """At the GPU's batch size only: 128, at which the CPU took 30.75 ms for each of 50 steps."""
    (subject,) = (one for one in report.subjects if one.id == "net")
    found = cpu_against_gpu(report.rows_of(subject), "epoch")
    assert found is not None
    (cpu,) = found.cpus
    assert found.gpu.observed.machine.hardware == "box"
    assert cpu.row.observed.batch_size == found.gpu.observed.batch_size == 128
    assert round(cpu.time.mean, 4) == round(50 * 0.03075 / 20, 4)
    ours, theirs = cpu.row.estimate("epoch"), found.gpu.estimate("epoch")
    assert ours is not None
    assert theirs is not None
    assert round(cpu.cost.mean, 9) == round(float(ours.mean / theirs.mean), 9)
    figure = cpu_against_gpu_figure(found, identifier="x", job="epoch")
    assert figure is not None
    assert "as the GPU" in str(figure.chart.spec())


def test_one_kind_of_device_alone_is_no_comparison(report: Report) -> None:
    """The published workload was timed on a GPU only."""
    (subject,) = (one for one in report.subjects if one.id == "paper")
    assert cpu_against_gpu(report.rows_of(subject), "epoch") is None
    assert cpu_against_gpu_figure(None, identifier="x", job="epoch") is None

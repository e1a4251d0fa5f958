"""Achieved operations a second, compared with peak rates (roofs)."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import onnx
import pytest

from analysis.test_tokens import project
from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.machines import measured_machine
from epochcost.analysis.observations import Observation
from epochcost.analysis.phases import timed_decoders
from epochcost.analysis.roofline import (
    DecodedStep,
    achieved_rates,
    decoded_steps,
    measured_roofs,
    roofs_of_host,
)
from epochcost.cost.estimate import Time
from epochcost.report.pages.page import Report
from epochcost.results.environment import Gpu
from epochcost.results.store import write_sidecar
from epochcost.specs.hardware import Accelerator, Hardware
from kept_ceilings import make_ceilings
from onnxstep.graphs.parameters import parameter_count
from report_project import inputs_of, make_result, write_project
from tiny_decoders import HEADS, LAYERS, SHARED, WIDTH, tiny_decoder

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


def test_achieved_is_counted_operations_over_the_time(report: Report) -> None:
    """Inference computes 1.34e6 operations for an example; a training step three times that."""
    hardware = report.catalogue.hardware["local"]
    achieved = achieved_rates(report.inputs, hardware, _on(report, hardware))
    training = next(row for row in achieved if row.observed.mode == "training")
    assert training.observed.batch_size == 128
    forward = 2 * (784 * 512 + 512 * 512 + 512 * 10)
    assert training.flops_per_second == pytest.approx(3 * forward * 128 / 0.03075, rel=1e-6)
    # Both passes read weights, one writes gradients, and SGD reads both and writes weights.
    weights = 4 * forward / 2
    least = training.least_bytes_per_second * 0.03075
    assert least == pytest.approx(6 * weights, rel=0.01)
    assert training.of_peak(training.roof) is None


def test_published_work_stands_below_the_roof_of_its_machine(report: Report) -> None:
    """The rate of a published training is a share of the spec's peak rate below 1."""
    on_box = _on(report, report.catalogue.hardware["box"])
    (printed,) = (row for row in on_box if row.workload.id == "net")
    assert achieved_rates(report.inputs, GPUS, [printed]) == ()  # the source does not give steps
    timed = replace(printed, step=Time.exact(Decimal("0.01")))
    achieved = achieved_rates(report.inputs, GPUS, [timed])
    share = achieved[0].of_peak(achieved[0].roof)
    assert share is not None
    assert 0 < share < 1


def test_mixed_precision_has_no_share_of_the_fp32_peak(report: Report) -> None:
    """Matrix units exceed the fp32 peak, and weights of two bytes are half the least traffic."""
    on_box = _on(report, report.catalogue.hardware["box"])
    (printed,) = (row for row in on_box if row.workload.id == "net")
    timed = replace(printed, step=Time.exact(Decimal("0.01")))
    (single,) = achieved_rates(report.inputs, GPUS, [timed])
    (mixed,) = achieved_rates(report.inputs, GPUS, [replace(timed, precision="mixed")])
    assert mixed.of_peak(mixed.roof) is None
    assert mixed.least_bytes_per_second == single.least_bytes_per_second / 2


@pytest.fixture(scope="module", name="with_ceilings")
def with_ceilings_fixture(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report with measured peak rates of its host, and of another host of the same kind."""
    folder = write_project(tmp_path_factory.mktemp("ceilings"))
    environment = make_result().environment
    for host in (environment, environment.model_copy(update={"fingerprint": "beef" * 4})):
        write_sidecar(folder / "docs/data/results", make_ceilings(host))
    return Report(inputs_of(folder))


def test_a_measured_roof_is_of_the_very_host(with_ceilings: Report) -> None:
    """Shares refer to the peak rates of the same host; other hosts' peak rates are only listed."""
    inputs = with_ceilings.inputs
    hardware = inputs.catalogue.hardware["local"]
    achieved = achieved_rates(inputs, hardware, _on(with_ceilings, hardware))
    fastest = achieved[0]
    of_host = roofs_of_host(inputs, fastest.observed.machine)
    assert {roof.host.environment.fingerprint for roof in of_host} == {"f00d" * 4}
    best = fastest.flops_per_second / (1.6e11 / 0.98)
    assert fastest.of_peak(fastest.measured) == pytest.approx(best)
    assert fastest.of_bandwidth(fastest.measured) == pytest.approx(
        fastest.least_bytes_per_second / (1.2e10 / 0.98)
    )
    roofs = measured_roofs(inputs, hardware, "cpu")
    hosts = [roof.host.environment.fingerprint[:4] for roof in roofs]
    assert [*zip(hosts, (roof.ceiling.threads for roof in roofs), strict=True)] == [
        ("beef", 1), ("beef", 2), ("f00d", 1), ("f00d", 2),
    ]  # fmt: skip
    assert measured_roofs(inputs, hardware, "cuda") == ()


def test_roofs_are_of_the_very_gpu(with_ceilings: Report) -> None:
    """A result on the second GPU, of another kind, is compared with that GPU's peak rates."""
    gpus = tuple(Gpu(name=name, memory_bytes=2**34, driver="1") for name in ("T4", "L4"))
    host = make_result().environment.model_copy(update={"gpus": gpus})
    inputs = with_ceilings.inputs
    folder = inputs.folders[0]
    records = [make_ceilings(host, provider="cuda", device=device) for device in (0, 1)]
    ceilings = {record.path(folder): record for record in records}
    local = inputs.catalogue.hardware["local"]
    machine = measured_machine(local, host, "cuda", only_host=True, gpu=1)
    roofs = roofs_of_host(replace(inputs, ceilings=ceilings), machine)
    assert {roof.host.device for roof in roofs} == {1}


def steps(root: Path) -> list[DecodedStep]:
    """The timed decoding steps of a project whose host copies 12 GB/s."""
    catalogue = project(root)
    onnx.save(tiny_decoder(), str(root / "models/tiny.onnx"))
    folder = root / "docs/data/results"
    write_sidecar(folder, make_ceilings(make_result().environment))
    inputs = read_inputs(catalogue, [folder], root / "docs")
    (timed,) = timed_decoders(inputs)
    return list(decoded_steps(inputs, timed))


def test_bytes_over_the_fastest_copy_are_the_least_time(tmp_path: Path) -> None:
    """The least time is that of reading all weights once and the cache of four sequences."""
    by_size = {(step.timed.sequences, step.timed.phase.tokens): step for step in steps(tmp_path)}
    assert len(by_size) == 4, "prefill is not bound by memory"
    rate = 1.2e10 / 0.98
    step = by_size[4, 200]
    cached = 4 * 200 * 4 * 2 * LAYERS * SHARED * (WIDTH // HEADS)
    assert step.cache_seconds == pytest.approx(cached / rate)
    weights = 4 * parameter_count(tiny_decoder()) / rate
    assert step.weight_seconds == pytest.approx(weights, rel=0.1)
    assert step.weight_seconds == by_size[1, 100].weight_seconds
    least = step.weight_seconds + step.cache_seconds
    assert step.of_ceiling == pytest.approx(least / 0.4)


def _on(report: Report, hardware: Hardware) -> list[Observation]:
    return [row for row in report.observations if row.machine.hardware == hardware.id]

"""A made-up result, to store and to read back."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.plan.trial import Trial
from epochcost.results.environment import Environment
from epochcost.results.records import FORMAT_VERSION, Measurement, Placement, Result
from report_project import REPOSITORY
from revisions import SPECS, write_spec

MakeResult = Callable[..., Result]


def make_result(
    *, batch_size: int = 32, hour: int = 12, fingerprint: str = "f00d" * 4, hardware: str = "local"
) -> Result:
    """A consistent result. The arguments are what distinguishes stored results."""
    trial = Trial(
        model="net",
        mode="training",
        provider="cpu",
        batch_size=batch_size,
        seed=0,
        runtime="onnxruntime 1.31.1",
        producer="0.1.0",
        graph_sha256="a" * 64,
        spec_sha256="b" * 64,
        relative_half_width=Decimal("0.02"),
        minimum_samples=30,
        budget_seconds=Decimal(20),
    )
    measurement = Measurement(
        started_at=dt.datetime(2026, 11, 21, hour, tzinfo=dt.UTC),
        wall_seconds=1.5,
        warmup_seconds=(0.5,),
        samples_seconds=(0.1, 0.2, 1e-05),
        stop_reason="precise",
        placement=Placement(
            provider="CPUExecutionProvider",
            nodes_by_provider={"CPUExecutionProvider": {"Gemm": 3}},
        ),
        steps_taken=3,
        held_out_loss_before=2.3,
        held_out_loss_after=0.4,
    )
    environment = Environment(
        fingerprint=fingerprint,
        cpu="A CPU \N{REGISTERED SIGN}",
        physical_cores=1,
        logical_cpus=2,
        memory_bytes=2**33,
        operating_system="Linux",
        python="3.11.2",
        runtime="onnxruntime 1.31.1",
    )
    return Result(
        format_version=FORMAT_VERSION,
        trial_id=trial.id,
        trial=trial,
        hardware=hardware,
        measurement=measurement,
        environment=environment,
    )


@pytest.fixture(name="make_result")
def make_result_fixture() -> MakeResult:
    """The function that makes results."""
    return make_result


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Specs, a model and an empty folder of results, in the current folder."""
    for name, text in SPECS.items():
        write_spec(tmp_path, name, text)
    (tmp_path / "models").mkdir()
    shutil.copyfile(REPOSITORY / "models/mnist_mlp.onnx", tmp_path / "models/mnist_mlp.onnx")
    (tmp_path / "docs/data/results/local").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path

"""The ratios of our step times to PyTorch's, as read from their file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.analysis.inputs import SlowerInference, StepRatio, StepRatios, read_ratios
from epochcost.plan.trial import SessionSettings, Trial
from report_project import inputs_of, make_result, write_project

_FILE = """{
 "models": {
  "net": {
   "4": {"1": {"eager": 0.8, "compile": 0.9}, "2": {"eager": 1.2}},
   "64": {"1": {"eager": 0.5}, "2": {}}
  },
  "text": {"1": {"2": {"eager": 1.5}}},
  "none": {"1": {"2": {}}}
 },
 "dimensions": {"text": {"sequence": 256}},
 "cpu": "AMD EPYC",
 "inference": {
  "net": {
   "1": {"2": {"PyTorch eager": 0.5, "OpenVINO": 1.06}},
   "32": {"2": {"PyTorch eager": 0.9, "OpenVINO": 1.4}}
  },
  "text": {"1": {"2": {"OpenVINO": 1.05}}}
 },
 "gpu": {"net": {"tf32": {"32": {}, "64": {"eager": 2.1}}}}
}"""


def trial(
    model: str, batch_size: int, threads: int, provider: str = "cpu", precision: str = "fp32"
) -> Trial:
    """A trial of training with these settings."""
    plain = make_result(model=model, batch_size=batch_size, precision=precision).trial
    settings = SessionSettings(threads=threads, cuda_graph=provider == "cuda")
    return plain.model_copy(update={"provider": provider, "session": settings})


@pytest.fixture
def ratios(tmp_path: Path) -> StepRatios:
    """Ratios read from a file, as in a build of the site."""
    path = tmp_path / "step-ratio.json"
    path.write_text(_FILE, encoding="utf-8")
    return read_ratios(path)


@pytest.mark.parametrize(
    ("batch_size", "threads", "expected"),
    [
        (4, 1, StepRatio(Decimal("0.9"))),
        (4, 2, StepRatio(Decimal("1.2"))),
        (4, 0, StepRatio(Decimal("1.2"))),
        (64, 8, StepRatio(Decimal("0.5"))),
        (8, 1, StepRatio(Decimal("0.9"), "at batch size 4")),
        (128, 1, StepRatio(Decimal("0.5"), "at batch size 64")),
        (15, 1, StepRatio(Decimal("0.9"), "at batch size 4", near=False)),
        (17, 1, StepRatio(Decimal("0.5"), "at batch size 64", near=False)),
    ],
    ids=["threads", "others", "all", "more", "twice 4", "twice 64", "nearer 4", "nearer 64"],
)
def test_the_nearest_comparison_is_told(
    ratios: StepRatios, batch_size: int, threads: int, expected: StepRatio
) -> None:
    """The ratio is that to PyTorch's faster mode, at the nearest compared batch size."""
    assert ratios.of(trial("net", batch_size, threads)) == expected


def test_the_worst_case_of_inference_counts_above_five_per_cent(ratios: StepRatios) -> None:
    """Each model has the largest ratio of its inference to another runtime, if above 1.05."""
    worst = SlowerInference(Decimal("1.4"), "OpenVINO", 32, 2, "AMD EPYC")
    assert ratios.slower_inference == {"net": worst}


@pytest.mark.parametrize("model", ["none", "unheard"])
def test_what_was_not_compared_has_no_ratio(ratios: StepRatios, model: str) -> None:
    """A model with a missing or empty entry in the file has no ratio."""
    assert ratios.of(trial(model, 1, 2)) is None


def test_a_gpu_has_ratios_of_its_own(ratios: StepRatios) -> None:
    """Ratios on GPUs are chosen by precision; ratios on CPUs are not used for a GPU."""
    assert ratios.of(trial("net", 32, 0, "cuda", "tf32")) == StepRatio(
        Decimal("2.1"), "at batch size 64"
    )
    assert ratios.of(trial("net", 64, 0, "cuda")) is None


def test_a_step_without_cuda_graphs_was_not_compared(ratios: StepRatios) -> None:
    """The compared steps on GPUs replayed CUDA graphs; others take up to twice as long."""
    slow = trial("net", 64, 0, "cuda", "tf32").model_copy(update={"session": SessionSettings()})
    assert ratios.of(slow) is None


def test_a_result_that_contradicts_its_spec_declares_no_machine(tmp_path: Path) -> None:
    """A run with ``--as-is`` does not move a host's other results to the machine that it names."""
    honest = make_result(hardware="local")
    forced = make_result(batch_size=128, hardware="box").model_copy(
        update={"contradictions": ("the spec has 64 vCPUs, this machine has 2",)}
    )
    write_project(tmp_path, [honest, forced])
    inputs = inputs_of(tmp_path)
    assert sorted(file.result.hardware for file in inputs.stored) == ["box", "local"]

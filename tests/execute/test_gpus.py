"""The GPU of a run is chosen by its CUDA number, and a missing GPU is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.errors import CapabilityError
from epochcost.execute import planning
from epochcost.execute.planning import gpu_descriptions, plan_run, require_device
from epochcost.plan.make import RunRequest
from epochcost.results.environment import Gpu
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project
from usable_providers import usable_providers

PAIR = (
    Gpu(name="NVIDIA H100", memory_bytes=80 * 2**30, driver="580"),
    Gpu(name="Tesla T4", memory_bytes=16 * 2**30, driver="580"),
)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine where CUDA works and shows two GPUs."""
    show(monkeypatch, *PAIR)


def show(patch: pytest.MonkeyPatch, *shown: Gpu) -> None:
    """Make CUDA appear to work and to show these GPUs."""
    patch.setattr(planning, "shown_gpus", lambda: shown)
    patch.setattr(planning, "require_cuda", lambda *_: None)


def test_each_gpu_is_named_with_its_number() -> None:
    """A GPU without a name is called "of unknown name"; unknown memory is left out."""
    unknown = Gpu(name=None, memory_bytes=None, driver=None)
    assert gpu_descriptions((*PAIR, unknown)) == [
        "GPU 0: NVIDIA H100, 80.0 GiB",
        "GPU 1: Tesla T4, 16.0 GiB",
        "GPU 2: of unknown name",
    ]


@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_that_is_not_there_is_refused_in_one_line() -> None:
    """The exit code is 3, and the message lists the GPUs."""
    require_device(1)
    require_device(None)
    with pytest.raises(
        CapabilityError, match=r"--device 2: .* GPU 0: NVIDIA H100.*GPU 1"
    ) as caught:
        require_device(2)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


@pytest.mark.skipif("cuda" in usable_providers(), reason="CUDA is usable here")
def test_a_gpu_is_not_to_be_had_without_cuda(tmp_path: Path) -> None:
    """Without CUDA the message says what is missing, not how many GPUs there are."""
    with pytest.raises(CapabilityError, match="provider cuda: expected a usable GPU"):
        plan_run(load_catalogue(write_tiny_project(tmp_path)), RunRequest(device=0))


@pytest.mark.usefixtures("two_gpus")
def test_the_number_of_the_run_goes_before_the_studies(tmp_path: Path) -> None:
    """``--device 1`` applies to all CUDA trials and changes no CPU trial."""
    catalogue = load_catalogue(write_tiny_project(tmp_path))
    planned = plan_run(catalogue, RunRequest(device=1))
    assert {trial.session.device for trial in planned.trials if trial.provider == "cuda"} == {1}
    assert {trial.variant for trial in planned.trials if trial.provider == "cuda"} == {"GPU 1"}
    plain = plan_run(catalogue, RunRequest())
    ids = [{t.id for t in plan.trials if t.provider == "cpu"} for plan in (planned, plain)]
    assert ids[0] == ids[1]
    assert {trial.session.device for trial in plain.trials} == {0}


@pytest.mark.usefixtures("two_gpus")
def test_the_room_is_that_of_the_gpu_that_is_used() -> None:
    """The room is the memory of the chosen GPU; a GPU that CUDA does not show has none."""
    assert planning.room_bytes()["cuda"] == 80 * 2**30
    assert planning.room_bytes({1})["cuda"] == 16 * 2**30
    assert planning.room_bytes({0, 1})["cuda"] == 16 * 2**30
    assert "cuda" not in planning.room_bytes({7})


V100 = Gpu(name="Tesla V100", memory_bytes=16 * 2**30, driver="580", compute_capability="7.0")


NEWEST = "onnxruntime-gpu==1.31.1"


def test_cuda_by_name_on_a_gpu_without_kernels_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The driver gives the compute capability, or the spec for a machine not yet rented.

    Without a request for CUDA, the CPU of the machine is measured.
    """
    catalogue = load_catalogue(write_tiny_project(tmp_path))
    monkeypatch.setattr(planning, "runtime_name", lambda: NEWEST)
    show(monkeypatch, V100)
    for request in (RunRequest(providers=("cuda",)), RunRequest(device=0)):
        with pytest.raises(CapabilityError, match=r"7\.5 to 9\.0, 12\.0, got one of 7\.0"):
            plan_run(catalogue, request)
    assert {trial.provider for trial in plan_run(catalogue, RunRequest()).trials} == {"cpu"}
    show(monkeypatch)
    ours = load_catalogue(Path(__file__).parents[2])
    with pytest.raises(
        CapabilityError, match=r"got one of 6\.0: onnxruntime-gpu==1\.26\.0 has them"
    ):
        plan_run(ours, RunRequest(studies=("starter",), providers=("cuda",), hardware="gcp-p100"))

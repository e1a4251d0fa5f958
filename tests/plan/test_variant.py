"""Variants of a study's work: all combinations, impossible ones, and plain trials."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from epochcost.plan.trial import SessionSettings, Trial
from epochcost.plan.variant import (
    CUDA_12_RUNTIME,
    declared_obstacle,
    missing_kernels,
    pinned_cpus,
    unsupported_reason,
)
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import Mode, Precision, Provider, Study
from epochcost.specs.target import PINNED_RUNTIME


def study(**said: Any) -> Study:
    """A study of one model with these keys."""
    return Study.model_validate({"id": "s", "name": "S", "models": ["net"], **said})


def test_pinning_is_of_the_cpu_provider() -> None:
    """Numbers of CPUs are for trials on the CPU. On a GPU or without the key there is one trial."""
    pinned = study(vcpus=[1, 2])
    assert pinned_cpus(pinned, "cpu", None) == (1, 2)
    assert pinned_cpus(pinned, "cuda", None) == pinned_cpus(study(), "cpu", 2) == (None,)


def test_all_cpus_are_the_plain_variant() -> None:
    """A trial on as many CPUs as the machine has is not pinned."""
    assert pinned_cpus(study(vcpus=[1, 2]), "cpu", 2) == (1, None)


def trial(precision: Precision, mode: Mode, provider: Provider, device: int = 0) -> Trial:
    """A made-up trial."""
    return Trial(
        model="net",
        mode=mode,
        provider=provider,
        precision=precision,
        batch_size=1,
        session=SessionSettings(device=device),
        seed=0,
        runtime="onnxruntime==1.31.1",
        producer="0.1.0",
        graph_sha256="a" * 64,
        spec_sha256="b" * 64,
        relative_half_width=Decimal("0.02"),
        minimum_samples=30,
        budget_seconds=Decimal(20),
    )


@pytest.mark.parametrize(
    ("precision", "mode", "provider", "reason"),
    [
        ("tf32", "inference", "cpu", "TF32"),
        ("fp16", "training", "cuda", None),
        ("bf16", "training", "cpu", "no bf16 kernel"),
        ("bf16", "inference", "cuda", None),
        ("int4", "training", "cpu", "inference"),
        ("int4", "inference", "cpu", "int4 is for decoders"),
        ("tf32", "training", "cuda", None),
    ],
)
def test_what_no_machine_does(
    precision: Precision, mode: Mode, provider: Provider, reason: str | None
) -> None:
    """A precision that the mode or the provider cannot have is refused with a reason."""
    found = unsupported_reason(trial(precision, mode, provider))
    assert (found is None) if reason is None else (found is not None and reason in found)


def test_a_gpu_that_is_not_shown_is_named() -> None:
    """A trial on a GPU that CUDA does not show is refused with the number of GPUs."""
    second = trial("fp32", "training", "cuda", device=1)
    assert unsupported_reason(second, 1) == "needs GPU 1; CUDA shows 1 here, counted from 0"
    assert unsupported_reason(second, 2) is None
    assert unsupported_reason(second, None) is None


@pytest.mark.parametrize(
    ("runtime", "served", "not_served"),
    [
        ("onnxruntime-gpu==1.31.1", "7.5 8.0 8.6 8.9 9.0 12.0", "3.7 6.0 7.0 7.2 10.0 10.3 12.1"),
        ("onnxruntime-gpu==1.28.0", "7.5 8.0 8.9 9.0 10.0 12.0 12.1", "6.0 7.0 10.3"),
        (CUDA_12_RUNTIME, "6.0 6.1 7.0 7.5 8.9 9.0 10.0 10.3 12.0", "3.0 3.7 5.2"),
        ("onnxruntime-gpu==1.19.2", "5.2 7.0 12.0", "3.7"),
    ],
)
def test_a_package_serves_what_it_has_kernels_for(
    runtime: str, served: str, not_served: str
) -> None:
    """A kernel runs on later minor numbers of its major number. Later majors need PTX."""
    assert {one: missing_kernels(runtime, one) for one in served.split()} == dict.fromkeys(
        served.split()
    )
    assert all(missing_kernels(runtime, one) for one in not_served.split())


def test_what_nobody_knows_is_not_refused() -> None:
    """An unknown capability, a package for the CPU and an old package are not refused."""
    assert missing_kernels("onnxruntime-gpu==1.31.1", None) is None
    assert missing_kernels("onnxruntime==1.31.1", "7.0") is None
    assert missing_kernels("onnxruntime-gpu==1.18.0", "3.0") is None


def machine(*names: str, capability: str = "9.0") -> Hardware:
    """A machine with GPUs of these names."""
    chips = [{"name": name, "compute_capability": capability} for name in names]
    return Hardware.model_validate(
        {"id": "m", "name": "M", "provider": "P", "source": "made up", "accelerators": chips}
    )


@pytest.mark.parametrize("name", ["GH200", "NVIDIA GH200 480GB", "GB10", "GB200-NVL72", "gb300"])
def test_a_module_with_an_arm_cpu_cannot_use_the_package_for_x86(name: str) -> None:
    """Modules with an Arm CPU cannot use CUDA, whatever the package's kernels."""
    for runtime in (PINNED_RUNTIME, CUDA_12_RUNTIME):
        assert "m cannot use CUDA: its CPU is an Arm CPU" in str(
            declared_obstacle(runtime, machine(name))
        )


@pytest.mark.parametrize("name", ["H100", "GH2000", "GB100", "XGH200", "Radeon GB20"])
def test_only_whole_words_name_a_module(name: str) -> None:
    """A longer name that contains a module's name means another GPU."""
    assert declared_obstacle(PINNED_RUNTIME, machine(name)) is None


def test_kernels_of_a_declared_gpu_are_checked() -> None:
    """Kernels are checked for the spec's compute capability, unless its GPUs differ in it."""
    volta = machine("V100", capability="7.0")
    assert declared_obstacle(PINNED_RUNTIME, volta) == missing_kernels(PINNED_RUNTIME, "7.0")
    assert declared_obstacle(CUDA_12_RUNTIME, volta) is None
    chips = (*volta.accelerators, *machine("H100").accelerators)
    mixed = volta.model_copy(update={"accelerators": chips})
    assert declared_obstacle(PINNED_RUNTIME, mixed) is None


def test_the_reason_says_what_else_there_is() -> None:
    """The reason names an older package that has kernels, or says that none has."""
    volta = missing_kernels("onnxruntime-gpu==1.31.1", "7.0")
    assert volta is not None
    assert f"got one of 7.0: {CUDA_12_RUNTIME} has them: docs/how-to/measure-a-" in volta
    assert "7.5 to 9.0, 12.0, got" in volta
    kepler = missing_kernels("onnxruntime-gpu==1.31.1", "3.7")
    assert kepler is not None
    assert kepler.endswith("got one of 3.7: no package that epochcost supports has them")

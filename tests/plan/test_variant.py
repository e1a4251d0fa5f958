"""Variants of a study's work: every combination, what no machine does, plain trials unchanged."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from epochcost.plan.trial import SessionSettings
from epochcost.plan.variant import (
    CUDA_12_RUNTIME,
    Variant,
    missing_kernels,
    session_settings,
    unsupported_reason,
    variants,
)
from epochcost.plan.work import STEPS
from epochcost.specs.study import Study


def study(**said: Any) -> Study:
    """A study of one model with these keys."""
    return Study.model_validate({"id": "s", "name": "S", "models": ["net"], **said})


def test_a_study_that_says_nothing_has_the_plain_variant() -> None:
    """Without any of the keys there is one variant."""
    for provider in ("cpu", "cuda"):
        (only,) = variants(study(), provider)  # type: ignore[arg-type]
        assert only == Variant()


def test_every_combination_is_a_variant() -> None:
    """Two precisions and three counts of CPUs are 6 trials."""
    found = tuple(variants(study(precisions=["fp32", "int4"], vcpus=[1, 2, 4]), "cpu"))
    assert len(found) == len(set(found)) == 6
    assert found[0] == Variant("fp32", 1)


def test_all_cpus_are_the_plain_variant() -> None:
    """On a machine of two CPUs a trial on two is the trial on the machine, not an emulation."""
    found = variants(study(vcpus=[1, 2]), "cpu", cpus=2)
    assert [variant.vcpus for variant in found] == [1, None]


def test_pinning_is_of_the_cpu_provider() -> None:
    """A GPU's trials are not repeated for each count of CPUs."""
    (only,) = variants(study(vcpus=[1, 2]), "cuda")
    assert only.vcpus is None


@pytest.mark.parametrize(
    ("variant", "mode", "provider", "reason"),
    [
        (Variant("tf32"), "inference", "cpu", "TF32"),
        (Variant("fp16"), "training", "cuda", None),
        (Variant("bf16"), "training", "cpu", "no bf16 kernel"),
        (Variant("bf16"), "inference", "cuda", None),
        (Variant("int4"), "training", "cpu", "inference"),
        (Variant("int4"), "inference", "cpu", "int4 is of decoders"),
        (Variant("tf32"), "training", "cuda", None),
    ],
)
def test_what_no_machine_does(variant: Variant, mode: Any, provider: Any, reason: Any) -> None:
    """A variant that the mode or the provider does not know is told from one that it does."""
    found = unsupported_reason(variant, mode, provider, STEPS)
    assert (found is None) if reason is None else (found is not None and reason in found)


def test_threads_follow_the_pinned_cpus() -> None:
    """Threads are as many as the CPUs, unless the study says how many."""
    assert session_settings(study(), Variant(vcpus=4), "cpu").threads == 4
    assert session_settings(study(threads=2), Variant(vcpus=4), "cpu").threads == 2
    assert session_settings(study(), Variant(), "cpu").threads == 0


def test_cuda_settings_are_of_cuda_alone() -> None:
    """A CPU trial is the same work whatever the study says of GPUs."""
    asked = study(cuda={"device": 1, "graphs": True, "memory_limit_gib": Decimal("1.5")})
    said = session_settings(asked, Variant(), "cuda")
    assert (said.device, said.cuda_graph) == (1, True)
    assert said.device_memory_limit_bytes == 3 * 2**29
    assert session_settings(asked, Variant(), "cpu") == SessionSettings()


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
    """A kernel runs on its own major number and later minors; later ones need PTX."""
    assert {one: missing_kernels(runtime, one) for one in served.split()} == dict.fromkeys(
        served.split()
    )
    assert all(missing_kernels(runtime, one) for one in not_served.split())


def test_what_nobody_knows_is_not_refused() -> None:
    """A GPU of unknown capability, a package for the CPU, one older than those that were read."""
    assert missing_kernels("onnxruntime-gpu==1.31.1", None) is None
    assert missing_kernels("onnxruntime==1.31.1", "7.0") is None
    assert missing_kernels("onnxruntime-gpu==1.18.0", "3.0") is None


def test_the_reason_says_what_else_there_is() -> None:
    """An older package where it has kernels, and that there is none for the oldest GPUs."""
    volta = missing_kernels("onnxruntime-gpu==1.31.1", "7.0")
    assert volta is not None
    assert f"install epochcost with {CUDA_12_RUNTIME}" in volta
    assert "7.5 to 9.0, 12.0, got one of 7.0" in volta
    kepler = missing_kernels("onnxruntime-gpu==1.31.1", "3.7")
    assert kepler is not None
    assert kepler.endswith("got one of 3.7: no package that a worker runs under has them")

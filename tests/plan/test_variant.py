"""Variants of a study's work: every combination, what no machine does, plain trials unchanged."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from epochcost.plan.trial import SessionSettings
from epochcost.plan.variant import Variant, session_settings, unsupported_reason, variants
from epochcost.specs.study import Study


def study(**said: Any) -> Study:
    """A study of one model with these keys."""
    return Study.model_validate({"id": "s", "name": "S", "models": ["net"], **said})


def test_a_study_that_says_nothing_has_the_plain_variant() -> None:
    """Without any of the keys there is one variant, and it is called nothing."""
    for provider in ("cpu", "cuda"):
        (only,) = variants(study(), provider)  # type: ignore[arg-type]
        assert only == Variant()
        assert only.title == ""


def test_every_combination_is_a_variant() -> None:
    """Two precisions, two levels, two runtimes and three counts of CPUs are 24 trials."""
    asked = study(
        precisions=["fp32", "int8"],
        vcpus=[1, 2, 4],
        runtimes=["onnxruntime==1.20.1", "onnxruntime-gpu==1.31.1"],
        session={"graph_optimizations": ["basic", "all"]},
    )
    found = tuple(variants(asked, "cpu"))
    assert len(found) == len(set(found)) == 24
    assert found[0].title == "1 vCPU, optimisation basic, onnxruntime==1.20.1"


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
        (Variant("int8"), "training", "cpu", "inference"),
        (Variant(runtime="onnxruntime==1.20.1"), "inference", "cuda", "built for the CPU alone"),
        (Variant(runtime="onnxruntime==1.20.1"), "inference", "cpu", None),
        (Variant(runtime="onnxruntime-gpu==1.20.1"), "inference", "cuda", None),
        (Variant("tf32"), "training", "cuda", None),
        (Variant("int8"), "inference", "cpu", None),
    ],
)
def test_what_no_machine_does(variant: Variant, mode: Any, provider: Any, reason: Any) -> None:
    """A variant that the mode or the provider does not know is told from one that it does."""
    found = unsupported_reason(variant, mode, provider)
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

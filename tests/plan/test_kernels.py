"""Which GPUs a package has kernels for: what its wheel holds, and what compiles for later ones."""

from __future__ import annotations

import pytest

from epochcost.plan.variant import CUDA_12_RUNTIME, missing_kernels


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
    assert volta.endswith(f"`epochcost runtimes install {CUDA_12_RUNTIME}`")
    assert "7.5 to 9.0, 12.0; got one of 7.0" in volta
    kepler = missing_kernels("onnxruntime-gpu==1.31.1", "3.7")
    assert kepler is not None
    assert kepler.endswith("got one of 3.7: no package that a worker runs under has them")

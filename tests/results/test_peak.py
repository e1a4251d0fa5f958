"""Upper bounds of a machine's FLOP/s, from its spec and the tables."""

from __future__ import annotations

from typing import Any

import pytest

from epochcost.results.environment import Gpu
from epochcost.results.plausibility import peak_flops
from epochcost.results.records import Result
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from report_project import REPOSITORY, make_result


@pytest.fixture(scope="module", name="catalogue")
def catalogue_fixture() -> Catalogue:
    """The project's own specs."""
    return load_catalogue(REPOSITORY)


def on(result: Result, **host: Any) -> Result:
    """The result with these facts about its host."""
    return result.model_copy(update={"environment": result.environment.model_copy(update=host)})


def test_any_cpu_is_bounded(catalogue: Catalogue) -> None:
    """The bound is 64 operations a cycle at 6.5 GHz."""
    assert peak_flops(catalogue, make_result()) == pytest.approx(2 * 64 * 6.5e9)


def test_a_host_lowers_what_its_spec_says_and_raises_nothing(catalogue: Catalogue) -> None:
    """Fewer CPUs than declared lower the bound, and more CPUs do not raise it."""
    declared = make_result(hardware="epyc-vm-2")
    least = peak_flops(catalogue, declared)
    assert least <= 2 * 64 * 6.5e9
    assert peak_flops(catalogue, on(declared, logical_cpus=2048)) == pytest.approx(least)
    assert peak_flops(catalogue, on(declared, logical_cpus=1)) < 0.6 * least


def _gpu_result(name: str | None) -> Result:
    made = on(make_result(), gpus=(Gpu(name=name, memory_bytes=None, driver=None),))
    return made.model_copy(
        update={"trial": made.trial.model_copy(update={"provider": "cuda", "precision": "fp16"})}
    )


def test_a_gpu_without_a_spec_is_bounded(catalogue: Catalogue) -> None:
    """The bound is of the catalogue's chip with the GPU's name, or else of the fastest chip."""
    room = 1.2 * 4
    t4 = peak_flops(catalogue, _gpu_result("Tesla T4"))
    assert t4 == pytest.approx(65.13e12 * room)
    unknown = peak_flops(catalogue, _gpu_result("NVIDIA Z9000"))
    assert unknown == peak_flops(catalogue, _gpu_result(None)) == pytest.approx(2.6e15 * room)

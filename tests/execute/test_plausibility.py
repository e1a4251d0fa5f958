"""No figure is stored under the name of a machine that this one cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from epochcost.errors import InputError
from epochcost.execute.plausibility import require_plausible
from epochcost.results.records import Environment, Gpu
from epochcost.specs.hardware import Hardware

K80 = Gpu(name="Tesla K80", memory_bytes=12 * 2**30, driver="580.1")


def environment(logical_cpus: int, *gpus: Gpu) -> Environment:
    """A machine of so many CPUs and these GPUs."""
    return Environment(
        fingerprint="f" * 16,
        cpu=None,
        physical_cores=None,
        logical_cpus=logical_cpus,
        memory_bytes=None,
        gpus=gpus,
        operating_system="Linux",
        python="3.11.2",
        runtime="onnxruntime==1.31.1",
    )


def hardware(**changes: Any) -> Hardware:
    """EC2's p2.xlarge, or what ``changes`` make of it."""
    document: dict[str, Any] = {
        "id": "p2.xlarge",
        "name": "EC2 p2.xlarge",
        "provider": "aws",
        "vcpus": 4,
        "accelerators": [{"name": "K80"}],
        "source": "a list",
    }
    return Hardware.model_validate(document | changes)


@pytest.mark.parametrize(
    ("spec", "machine"),
    [
        (hardware(), environment(4, K80)),
        (hardware(accelerators=[{"name": "K80", "count": 2}]), environment(4, K80, K80)),
        (hardware(vcpus=None, accelerators=[]), environment(96)),
        (hardware(id="local", detected=True), environment(7)),
    ],
)
def test_machines_that_fit_their_spec_pass(spec: Hardware, machine: Environment) -> None:
    """What is declared agrees with what is found; what is not declared is not judged."""
    require_plausible(spec, machine)


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (environment(8, K80), "8 logical CPUs, not 4"),
        (environment(4), "0 GPUs, not 1"),
        (environment(8), "8 logical CPUs, not 4; 0 GPUs, not 1"),
        (environment(4, K80, K80), "2 GPUs, not 1"),
    ],
)
def test_machines_that_contradict_it_are_refused(machine: Environment, words: str) -> None:
    """Every contradiction is named, with the way out."""
    with pytest.raises(InputError, match=words) as refused:
        require_plausible(hardware(), machine)
    assert "leave --hardware out" in str(refused.value)

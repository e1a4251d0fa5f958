"""A result is not stored under the name of a machine that this machine cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from epochcost.errors import InputError
from epochcost.results.environment import Environment, Gpu, Instance
from epochcost.results.plausibility import contradictions, require_plausible, same_chip
from epochcost.specs.hardware import Hardware

K80 = Gpu(name="Tesla K80", memory_bytes=12 * 2**30, driver="580.1")


def environment(logical_cpus: int, *gpus: Gpu) -> Environment:
    """A machine with this number of CPUs and these GPUs."""
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
    """The spec of EC2's p2.xlarge with these changes."""
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
    """A machine passes if its declared facts agree. Undeclared facts are not compared."""
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
    """The refusal names every contradiction and the options that allow the run."""
    with pytest.raises(InputError, match=words) as refused:
        require_plausible(hardware(), machine)
    assert "correct its spec, leave --hardware out" in str(refused.value)
    assert "--as-is" in str(refused.value)


def with_facts(**facts: Any) -> Environment:
    """A machine of four CPUs and a K80 with these facts known too."""
    return environment(4, K80).model_copy(update=facts)


EC2 = Instance(provider="AWS EC2", type="p2.xlarge")


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"memory_gib": 61}, {"memory_bytes": int(59.8 * 2**30)}),
        ({"memory_gib": 61}, {"memory_bytes": None}),
        ({"cores": 2}, {"physical_cores": 2}),
        # A hypervisor shows threads as cores.
        ({"cores": 2}, {"physical_cores": 4}),
        ({}, {"cpu_quota": 4.0}),
        ({"cpu": "AMD EPYC (family 25, model 1)"}, {"cpu": "AMD EPYC 7R13"}),
        ({"cpu": "Xeon E5-2686 v4"}, {"cpu": "Intel(R) Xeon(R) CPU E5-2686 v4 @ 2.30GHz"}),
        ({"provider": "AWS EC2"}, {"instance": EC2}),
        # The service of a cloud knows nothing of those who rent its machines out.
        ({"provider": "Lambda"}, {"instance": EC2}),
        (
            {"id": "n1-standard-4-k80", "provider": "Google Compute Engine"},
            {"instance": Instance(provider="Google Compute Engine", type="n1-standard-4")},
        ),
        (
            {"id": "nc4as-t4-v3", "provider": "Azure"},
            {"instance": Instance(provider="Azure", type="Standard_NC4as_T4_v3")},
        ),
        (
            {"id": "gcp-k80", "provider": "Google Compute Engine"},
            {"instance": Instance(provider="Google Compute Engine", type="n1-highmem-4")},
        ),
    ],
)
def test_every_known_fact_may_agree(changes: dict[str, Any], facts: dict[str, Any]) -> None:
    """Reserved memory, hidden threads and other spellings are no contradiction."""
    assert contradictions(hardware(**changes), with_facts(**facts)) == ()


@pytest.mark.parametrize(
    ("changes", "facts", "words"),
    [
        ({"memory_gib": 61}, {"memory_bytes": 32 * 2**30}, "32.0 GiB of memory, not 61"),
        (
            {"memory_gib": 61},
            {"memory_bytes": 61 * 2**30, "memory_limit_bytes": 8 * 2**30},
            "8.0 GiB of memory, not 61",
        ),
        ({"cores": 2}, {"physical_cores": 1}, "1 cores, not 2"),
        ({}, {"cpu_quota": 2.5}, "a quota of 2.5 CPUs, not 4"),
        (
            {"cpu": "AMD EPYC (family 25, model 1)"},
            {"cpu": "AMD EPYC (family 26, model 2)"},
            "a CPU AMD EPYC (family 26, model 2), not AMD EPYC (family 25, model 1)",
        ),
        (
            {"cpu": "AMD EPYC 7R13"},
            {"cpu": "Intel(R) Xeon(R) Processor"},
            "a CPU Intel(R) Xeon(R) Processor, not AMD EPYC 7R13",
        ),
        (
            {"accelerators": [{"name": "Tesla T4"}]},
            {},
            "a Tesla K80, not a Tesla T4",
        ),
        (
            {"id": "p3.2xlarge", "provider": "AWS EC2"},
            {"instance": EC2},
            "the instance type p2.xlarge, not p3.2xlarge",
        ),
        (
            {"provider": "Azure"},
            {"instance": EC2},
            "the instance type p2.xlarge of AWS EC2, not Azure",
        ),
    ],
)
def test_every_known_fact_may_contradict(
    changes: dict[str, Any], facts: dict[str, Any], words: str
) -> None:
    """Each contradiction alone is reported."""
    assert contradictions(hardware(**changes), with_facts(**facts)) == (words,)


@pytest.mark.parametrize(
    ("driver", "spec"),
    [
        ("NVIDIA A100-SXM4-40GB", "A100 SXM4 (40 GB)"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe (80 GB)"),
        ("Tesla V100-SXM2-16GB", "Tesla V100 SXM2"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA L40S", "L40S"),
        ("Quadro RTX 6000", "Quadro RTX 6000"),
        ("NVIDIA A10G", "A10G"),
    ],
)
def test_drivers_spell_chips_in_their_own_way(driver: str, spec: str) -> None:
    """A driver's name with the spec's model number means the same chip."""
    assert same_chip(driver, spec)


@pytest.mark.parametrize(
    ("driver", "spec"),
    [
        ("NVIDIA L40S", "L4"),
        ("NVIDIA A10G", "A10"),
        ("NVIDIA H200", "H100 SXM5"),
        ("Tesla P100-PCIE-16GB", "Tesla V100"),
        ("NVIDIA RTX A6000", "Quadro RTX 6000"),
    ],
)
def test_names_that_begin_alike_are_other_chips(driver: str, spec: str) -> None:
    """Words are compared whole, so names that only begin alike mean different chips."""
    assert not same_chip(driver, spec)


@pytest.mark.parametrize(
    ("name", "memory_gib", "found"),
    [
        ("Tesla V100 (32 GB)", 32, Gpu(name="Tesla V100", memory_bytes=16 * 2**30, driver="580")),
        ("Quadro RTX 6000", 24, Gpu(name="RTX PRO 6000", memory_bytes=95 * 2**30, driver="580")),
    ],
)
def test_namesakes_differ_in_memory(name: str, memory_gib: int, found: Gpu) -> None:
    """A chip with the spec's model number and another memory is a contradiction."""
    spec = hardware(accelerators=[{"name": name, "memory_gib": memory_gib}])
    (words,) = contradictions(spec, environment(4, found))
    assert words.endswith(f"GiB, not of {memory_gib}")


def test_error_correction_takes_its_part() -> None:
    """Memory without the part for error correction, 15 GiB of a T4's 16, fits the spec."""
    spec = hardware(accelerators=[{"name": "Tesla T4", "memory_gib": 16}])
    t4 = Gpu(name="Tesla T4", memory_bytes=15360 * 2**20, driver="580")
    assert contradictions(spec, environment(4, t4)) == ()

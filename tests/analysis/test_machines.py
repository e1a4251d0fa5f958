"""Names of machines for readers."""

from __future__ import annotations

import pytest

from epochcost.analysis.machines import cpu_name, hardware_option, measured_machine
from epochcost.results.environment import Environment, Gpu
from epochcost.specs.hardware import Accelerator, Hardware
from report_project import make_result

LOCAL = Hardware(id="local", name="This machine", provider="x", detected=True, source="read")
BOX = Hardware(
    id="box", name="Box", provider="x", source="list", accelerators=(Accelerator(name="GPU"),)
)
WITH_GPU = make_result().environment.model_copy(
    update={"gpus": (Gpu(name="Some GPU", memory_bytes=2**34, driver="1"),)}
)


@pytest.mark.parametrize(
    ("hardware", "device", "only_host", "name"),
    [
        (LOCAL, "cuda", True, "This machine: Some GPU, 2 vCPUs"),
        (LOCAL, "cpu", True, "This machine: Some, 2 vCPUs"),
        (BOX, "cuda", True, "Box"),
        (BOX, "cpu", True, "Box, on its CPU"),
        (BOX, "cuda", False, "Box (host f00d)"),
    ],
)
def test_a_machine_is_named_by_what_did_the_work(
    hardware: Hardware, device: str, *, only_host: bool, name: str
) -> None:
    """The name has the device that did the work, and the host if there are several."""
    assert measured_machine(hardware, WITH_GPU, device, only_host=only_host).name == name


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ("Intel(R) Xeon(R) CPU E5-2666 v3 @ 2.90GHz", "Intel Xeon E5-2666 v3"),
        ("AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763"),
        (None, "unknown CPU"),
    ],
)
def test_cpu_names_lose_marks_and_clock(reported: str | None, expected: str) -> None:
    """Trade marks, the clock and the number of cores are removed from a CPU's name."""
    environment: Environment = WITH_GPU.model_copy(update={"cpu": reported})
    assert cpu_name(environment) == expected


def test_a_command_names_every_machine_but_local() -> None:
    """A run without ``--hardware`` is for `local`."""
    assert (hardware_option("box"), hardware_option("local")) == (" --hardware box", "")

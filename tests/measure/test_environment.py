"""The environment is this machine's, and its fingerprint tells hosts apart, not moods."""

from __future__ import annotations

import psutil

from epochcost.measure.environment import detect_environment
from epochcost.measure.memory import peak_memory_bytes
from epochcost.measure.runtime import runtime_name
from epochcost.results.environment import Gpu, fingerprint

GIB = 2**30
H200 = Gpu(name="NVIDIA H200", memory_bytes=141 * GIB, driver="580.1")


def test_this_machine_is_described() -> None:
    """Cores, memory, runtime and versions are those of this process's machine."""
    found = detect_environment()
    assert found.logical_cpus == len(psutil.Process().cpu_affinity())
    assert found.memory_bytes == psutil.virtual_memory().total
    assert found.cpu
    assert found.runtime == runtime_name()
    assert found.runtime.startswith("onnxruntime")
    assert {"numpy", "onnx", "epochcost"} <= found.packages.keys()
    assert found.instance is None


def test_the_fingerprint_is_stable() -> None:
    """Two looks at one machine agree."""
    assert detect_environment().fingerprint == detect_environment().fingerprint


def test_the_fingerprint_ignores_what_varies_between_boots() -> None:
    """A few megabytes and another driver are the same host."""
    same = H200.model_copy(update={"driver": "590.2"})
    assert fingerprint("EPYC", 8, 16, 64 * GIB, (H200,)) == fingerprint(
        "EPYC", 8, 16, 64 * GIB - 9_000_000, (same,)
    )


def test_the_fingerprint_tells_hosts_apart() -> None:
    """CPU, cores, memory and GPUs each make another host."""
    hosts = {
        fingerprint("EPYC", 8, 16, 64 * GIB, ()),
        fingerprint("Xeon", 8, 16, 64 * GIB, ()),
        fingerprint("EPYC", 16, 16, 64 * GIB, ()),
        fingerprint("EPYC", 8, 8, 64 * GIB, ()),
        fingerprint("EPYC", 8, 16, 32 * GIB, ()),
        fingerprint("EPYC", 8, 16, 64 * GIB, (H200,)),
        fingerprint("EPYC", 8, 16, 64 * GIB, (H200, H200)),
        fingerprint(None, None, 16, 64 * GIB, ()),
    }
    assert len(hosts) == 8


def test_peak_memory_is_at_least_what_is_held() -> None:
    """The peak is in bytes, and not below the present resident set."""
    peak = peak_memory_bytes()
    assert peak is not None
    assert peak >= psutil.Process().memory_info().rss * 0.9

"""The machine and its software, as found: what a stored figure must be read with.

Whatever cannot be read is None or absent, never zero. The instance type is left unknown here.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path

import psutil
import pynvml

from epochcost import __version__
from epochcost.errors import CapabilityError
from epochcost.results.records import Environment, Gpu

# The distributions that provide the module onnxruntime, most specific first.
_RUNTIMES = ("onnxruntime-gpu", "onnxruntime")
# Those absent are left out; the NVIDIA ones are there where the extra `gpu` is installed.
_PACKAGES = ("numpy", "onnx", "nvidia-cublas", "nvidia-cudnn-cu13")
_GIB = 2**30
_CPUINFO = Path("/proc/cpuinfo")
_TOOL_SECONDS = 5


def detect() -> Environment:
    """Describe this machine now. Raises CapabilityError where onnxruntime is not installed."""
    cpu, physical, logical = _cpu_model(), psutil.cpu_count(logical=False), _usable_cpus()
    memory_bytes, gpus = psutil.virtual_memory().total, _gpus()
    return Environment(
        fingerprint=fingerprint(cpu, physical, logical, memory_bytes, gpus),
        cpu=cpu,
        physical_cores=physical,
        logical_cpus=logical,
        memory_bytes=memory_bytes,
        gpus=gpus,
        operating_system=platform.platform(),
        python=platform.python_version(),
        runtime=runtime_name(),
        packages=_package_versions(),
        virtualisation=_virtualisation(),
        load_average_1min=_load_average(),
    )


def runtime_name() -> str:
    """Name the installed package that provides onnxruntime, as ``package==version``.

    Raises CapabilityError where there is none.
    """
    for name in _RUNTIMES:
        try:
            return f"{name}=={importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    raise CapabilityError(
        "onnxruntime: demanded onnxruntime-gpu or onnxruntime to measure with; neither is "
        "installed: `pip install 'epochcost[run]'`"
    )


def fingerprint(
    cpu: str | None,
    physical_cores: int | None,
    logical_cpus: int,
    memory_bytes: int,
    gpus: tuple[Gpu, ...],
) -> str:
    """Hash what makes two hosts alike: CPU, cores, memory to the GiB, GPUs; 16 hex digits.

    Drivers and kernels may differ: they are versions, not machines. Memory is rounded because
    what a kernel keeps for itself varies from boot to boot.
    """
    parts = [cpu, physical_cores, logical_cpus, round(memory_bytes / _GIB)]
    parts += [f"{gpu.name}/{round((gpu.memory_bytes or 0) / _GIB)}" for gpu in gpus]
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]


def _package_versions() -> dict[str, str]:
    versions = {"epochcost": __version__}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def _cpu_model() -> str | None:
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return _first(_output("sysctl", "-n", "machdep.cpu.brand_string"), platform.processor())
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return _first(next(named, None), _lscpu_model(), platform.processor())


def _lscpu_model() -> str | None:
    """Ask lscpu, which knows the names of Arm cores that /proc/cpuinfo gives as numbers."""
    for line in (_output("lscpu") or "").splitlines():
        if line.startswith("Model name:"):
            return line.partition(":")[2].strip()
    return None


def _usable_cpus() -> int:
    """Count the logical CPUs that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _gpus() -> tuple[Gpu, ...]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        count = pynvml.nvmlDeviceGetCount()
        return tuple(_gpu(pynvml.nvmlDeviceGetHandleByIndex(i), driver) for i in range(count))
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def _gpu(handle: object, driver: str) -> Gpu:
    return Gpu(
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
        driver=driver,
    )


def _text(value: str | bytes) -> str:
    """Older versions of the binding give bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _virtualisation() -> str | None:
    """Name the container or hypervisor, ``none`` on bare metal; None where nothing tells."""
    return _output("systemd-detect-virt", any_status=True)


def _load_average() -> float | None:
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def _output(*command: str, any_status: bool = False) -> str | None:
    """Run a system tool; its output without surrounding blanks, None if absent or failing."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if any_status or done.returncode == 0 else None


def _first(*candidates: str | None) -> str | None:
    return next((text for text in candidates if text), None)

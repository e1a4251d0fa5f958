"""Describe the machine and its software, as stored with every result.

Other modules read the facts; this module puts them together. A fact that cannot be read is None or
absent, never zero; ``Environment.unknown`` has the reason if it is known. ``watch`` watches the
machine while a trial runs.
"""

from __future__ import annotations

import functools
import itertools
import platform
import time
from collections.abc import Callable

import psutil

from epochcost.measure.cloud import instance
from epochcost.measure.cpu import (
    cpu_model,
    cpu_quota,
    governors,
    usable_cpus,
    virtualisation,
)
from epochcost.measure.gpus import list_gpus
from epochcost.measure.memory import memory_limit_bytes
from epochcost.measure.revision import code_revision
from epochcost.measure.runtime import package_versions, runtime_name
from epochcost.results.environment import Environment, Processor, fingerprint

_TIMER_READINGS = 2000
_NO_GOVERNOR = "no cpufreq here: the firmware or the host sets the clock"
_NO_REVISION = "the code is no git checkout: its version is in packages"


def detect_environment() -> Environment:
    """Describe this machine now; raises CapabilityError if onnxruntime is not installed."""
    cpu, physical, logical = _cpu_model(), psutil.cpu_count(logical=False), usable_cpus()
    memory_bytes, limit_bytes = psutil.virtual_memory().total, memory_limit_bytes()
    (gpus, no_gpus), (rented, not_rented) = list_gpus(), _instance()
    governor, revision = governors(), _code_revision()
    reasons = {
        "gpus": no_gpus,
        "instance": not_rented,
        "processor.governor": None if governor else _NO_GOVERNOR,
        "revision": None if revision else _NO_REVISION,
    }
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
        packages=package_versions(),
        virtualisation=_virtualisation(),
        instance=rented,
        processor=Processor(governor=governor),
        cpu_quota=cpu_quota(),
        memory_limit_bytes=limit_bytes if limit_bytes < memory_bytes else None,
        timer_step_seconds=timer_step_seconds(),
        revision=revision.commit if revision else None,
        modified=revision.modified if revision else None,
        unknown={name: reason for name, reason in reasons.items() if reason is not None},
    )


def timer_step_seconds(clock: Callable[[], float] = time.perf_counter) -> float | None:
    """The smallest observed step between two readings of the timer, in seconds.

    It is the timer's resolution, or the duration of a reading if that is longer.
    """
    readings = [clock() for _ in range(_TIMER_READINGS)]
    steps = (later - earlier for earlier, later in itertools.pairwise(readings))
    return min((step for step in steps if step > 0), default=None)


# Read once, since they do not change while a program runs.
_cpu_model = functools.cache(cpu_model)
_code_revision = functools.cache(code_revision)
_instance = functools.cache(instance)
_virtualisation = functools.cache(virtualisation)

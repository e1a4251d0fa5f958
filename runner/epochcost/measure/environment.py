"""Describe the machine, its software and the revision of the code, as stored with every result.

A fact that cannot be read is None or absent, never zero; ``Environment.unknown`` may say why.
"""

from __future__ import annotations

import functools
import itertools
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from epochcost.measure.cloud import instance, suspected_cloud
from epochcost.measure.cpu import (
    cpu_model,
    cpu_quota,
    governors,
    tool_output,
    usable_cpus,
    virtualisation,
)
from epochcost.measure.gpus import list_gpus
from epochcost.measure.memory import memory_limit_bytes
from epochcost.measure.runtime import package_versions, runtime_name
from epochcost.results.environment import Environment, Processor, fingerprint

_TIMER_READINGS = 2000
_NO_GOVERNOR = "no cpufreq here: the firmware or the host sets the clock"
_NO_REVISION = "the code is no git checkout: its version is in packages"


def detect_environment() -> Environment:
    """Describe this machine now; raises CapabilityError if onnxruntime is not installed."""
    cpu, physical, logical = _cpu_model(), psutil.cpu_count(logical=False), usable_cpus()
    memory_bytes, limit_bytes = psutil.virtual_memory().total, memory_limit_bytes()
    (gpus, no_gpus), (rented, not_rented) = list_gpus(), _instance(suspected_cloud())
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


def timer_step_seconds() -> float | None:
    """The timer's resolution in seconds, or the duration of a reading if that is longer."""
    readings = [time.perf_counter() for _ in range(_TIMER_READINGS)]
    steps = (later - earlier for earlier, later in itertools.pairwise(readings))
    return min((step for step in steps if step > 0), default=None)


CODE = Path(__file__).parents[1]
# `epochcost launch` writes this file into the package that it installs on another machine.
NOTE = "revision.txt"


@dataclass(frozen=True)
class Revision:
    """The commit of a checkout, and whether files of epochcost or onnxstep are modified."""

    commit: str
    modified: bool

    def note(self) -> str:
        """The text of the file ``NOTE``, which states the revision of an installed package."""
        return f"{self.commit} {'modified' if self.modified else 'unmodified'}\n"


def code_revision(folder: Path = CODE) -> Revision | None:
    """Revision of code that git tracks or `epochcost launch` installed; None for other code."""
    if (folder / NOTE).is_file():
        commit, state = (folder / NOTE).read_text("utf-8").split()
        return Revision(commit, modified=state == "modified")
    git = ("git", "--no-optional-locks", "-C", str(folder))
    if tool_output(*git, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit_id = tool_output(*git, "rev-parse", "HEAD")
    changes = tool_output(*git, "status", "--porcelain", "--", ".", "../onnxstep")
    if not commit_id or changes is None:
        return None
    return Revision(commit_id, modified=bool(changes))


# Cached, since it does not change while the program runs.
_cpu_model = functools.cache(cpu_model)
_code_revision = functools.cache(code_revision)
_instance = functools.cache(instance)
_virtualisation = functools.cache(virtualisation)

"""Read small text files of the kernel, run system tools, and find facts about the CPU."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


def read_text(file: Path) -> str | None:
    """The text of a file, stripped; None if the file is missing or unreadable."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def read_number(file: Path) -> int | None:
    """The natural number in a file; None if the file contains anything else."""
    text = read_text(file)
    return int(text) if text is not None and text.isdecimal() else None


def parse_cpu_list(text: str | None) -> frozenset[int]:
    """Parse the kernel's list of CPUs: ``0-2,5`` is 0, 1, 2 and 5; empty for any other form."""
    cpus: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            return frozenset()
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


@dataclass(frozen=True)
class ControlGroups:
    """The control groups of a process, which limit its resources."""

    membership: Path = Path("/proc/self/cgroup")
    mounted: Path = Path("/sys/fs/cgroup")

    def files(self, unified: str, controller: str, legacy: str) -> tuple[Path, ...]:
        """Paths of a control file in the process's group and enclosing groups, innermost first.

        The file is called ``unified`` in version 2 of control groups, and ``legacy`` in version 1
        (the kernel's admin-guide: cgroup-v2, cgroup-v1). In a container, some paths may not exist.
        """
        files: list[Path] = []
        for line in (read_text(self.membership) or "").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                files += _upward(self.mounted, path, unified)
            elif controller in controllers.split(","):
                files += _upward(self.mounted / controller, path, legacy)
        return tuple(files)


OWN_GROUPS = ControlGroups()


def _upward(root: Path, path: str, name: str) -> list[Path]:
    group = root / path.lstrip("/")
    return [folder / name for folder in (group, *group.parents) if folder.is_relative_to(root)]


_SECONDS = 5


def tool_output(*command: str, any_status: bool = False) -> str | None:
    """A system tool's stripped output; None if the tool is absent, fails or is too slow.

    With ``any_status``, a tool may end with an exit status other than 0.
    """
    if shutil.which(command[0]) is None:
        return None
    try:
        completed = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
            # Some tools, such as lscpu, translate their output.
            env=os.environ | {"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.strip() if any_status or completed.returncode == 0 else None


_CPUINFO = Path("/proc/cpuinfo")
SYSTEM = Path("/sys/devices/system")


def cpu_model(cpuinfo: Path = _CPUINFO) -> str | None:
    """The CPU's name, with family and model number if the name is short, such as "AMD EPYC"."""
    lines = (read_text(cpuinfo) or "").splitlines()
    pairs = (line.partition(":") for line in reversed(lines))
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    name, family, model = (fields.get(key) for key in ("model name", "cpu family", "model"))
    if name and family and model and not any(letter.isdigit() for letter in name):
        name = f"{name} (family {family}, model {model})"
    apple = tool_output("sysctl", "-n", "machdep.cpu.brand_string") if not lines else None
    return name or apple or _cpu_model_from_lscpu() or platform.processor() or None


def _cpu_model_from_lscpu() -> str | None:
    # lscpu has names for Arm cores, for which /proc/cpuinfo has only numbers.
    for line in (tool_output("lscpu") or "").splitlines():
        if line.startswith("Model name:"):
            return line.partition(":")[2].strip()
    return None


def usable_cpus() -> int:
    """Number of logical CPUs on which this process may run."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def governors(system: Path = SYSTEM) -> str | None:
    """The kernel's policies (governors) for the clocks of the CPUs; None if there are none."""
    names = {read_text(file) for file in system.glob("cpu/cpu[0-9]*/cpufreq/scaling_governor")}
    return ", ".join(sorted(filter(None, names))) or None


def throttle_count(system: Path = SYSTEM) -> int | None:
    """How often heat lowered a clock since the machine's start; None except on Intel's CPUs."""
    files = system.glob("cpu/cpu[0-9]*/thermal_throttle/*_throttle_count")
    counts = [count for count in map(read_number, files) if count is not None]
    return sum(counts) if counts else None


def virtualisation() -> str | None:
    """The name of the hypervisor, ``none`` on bare metal; None if unknown."""
    return tool_output("systemd-detect-virt", "--vm", any_status=True) or None


def cpu_quota(groups: ControlGroups = OWN_GROUPS) -> float | None:
    """The CPU time that the control groups allow, as a number of CPUs; None without a limit."""
    shares = [
        _unified_quota(file) if file.name == "cpu.max" else _legacy_quota(file)
        for file in groups.files("cpu.max", "cpu", "cpu.cfs_quota_us")
    ]
    return min((share for share in shares if share), default=None)


def _unified_quota(file: Path) -> float | None:
    quota, _, period = (read_text(file) or "").partition(" ")
    allowed = quota.isdecimal() and period.isdecimal() and int(period)
    return int(quota) / int(period) if allowed else None


def _legacy_quota(file: Path) -> float | None:
    quota, period = read_number(file), read_number(file.with_name("cpu.cfs_period_us"))
    return quota / period if quota and period else None

"""Read the kernel's small text files, such as those of this process's control groups.

Callers interpret the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MEMBERSHIP = Path("/proc/self/cgroup")
CONTROL_GROUPS = Path("/sys/fs/cgroup")


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
    """Parse a list of CPUs in the kernel's format: ``0-2,5`` is 0, 1, 2 and 5.

    Empty if the text has another form.
    """
    cpus: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            return frozenset()
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


@dataclass(frozen=True)
class ControlGroups:
    """The control groups to which a process belongs.

    ``membership`` is the text of its /proc/<id>/cgroup.
    """

    membership: Path = MEMBERSHIP
    mounted: Path = CONTROL_GROUPS

    def files(self, unified: str, controller: str, legacy: str) -> tuple[Path, ...]:
        """Paths of a control file in this process's group and in all groups above, innermost first.

        The file is ``unified`` in version 2 and ``legacy`` below ``controller`` in version 1 (the
        kernel's admin-guide: cgroup-v2, cgroup-v1). The paths need not exist: a container mounts
        its own group as the root.
        """
        files: list[Path] = []
        for line in (read_text(self.membership) or "").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                files += _upward(self.mounted, path, unified)
            elif controller in controllers.split(","):
                files += _upward(self.mounted / controller, path, legacy)
        return tuple(files)


def _upward(root: Path, path: str, name: str) -> list[Path]:
    group = root / path.lstrip("/")
    return [folder / name for folder in (group, *group.parents) if folder.is_relative_to(root)]

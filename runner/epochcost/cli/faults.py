"""Faults as the checks write them: objects for machines, and numbers of things for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochcost.errors import Fault


def faults_as_json(faults: Iterable[Fault]) -> dict[str, list[dict[str, Any]]]:
    """The faults as objects, under their key."""
    return {"faults": [fault_as_json(fault) for fault in faults]}


def fault_as_json(fault: Fault) -> dict[str, Any]:
    """A place and what is said of it."""
    return {
        "path": fault.path.as_posix(),
        "line": fault.line,
        "column": fault.column,
        "message": fault.message,
    }


def counted(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"

"""Measurements in one JSON file; every finished case is added at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]
_EMPTY: Mapping[str, Any] = {"machine": {}, "ceilings": {}, "cases": {}}


class Records:
    """The file: for each case its ``sessions`` (contenders, seconds of each round) and ``failed``.

    A contender is in at most one session of a case, epochcost in all sessions. ``our_peak`` is a
    later measurement of the memory of epochcost's step.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.all: Record = (
            json.loads(path.read_text("utf-8"))
            if path.is_file()
            else json.loads(json.dumps(_EMPTY))
        )

    def case(self, key: str) -> Record:
        """The record of a case, an empty record if the case has none."""
        cases: dict[str, Record] = self.all["cases"]
        empty: Record = {"sessions": [], "failed": {}, "losses": {}, "notes": {}}
        cases[key] = {**empty, **cases.get(key, {})}
        return cases[key]

    def missing(self, key: str, contenders: Sequence[str]) -> list[str]:
        """The contenders without a measurement or failure."""
        record = self.all["cases"].get(key, {"sessions": [], "failed": {}})
        measured = {name for session in record["sessions"] for name in session["seconds"]}
        return [
            name for name in contenders if name not in measured and name not in record["failed"]
        ]

    def forget(self, key: str, contenders: Sequence[str]) -> None:
        """Drop the sessions and failures of these contenders."""
        record = self.case(key)
        record["sessions"] = [
            session
            for session in record["sessions"]
            if not set(contenders) & set(session["seconds"])
        ]
        for name in contenders:
            record["failed"].pop(name, None)

    def save(self) -> None:
        """Write the file atomically."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_suffix(".partial")
        partial.write_text(_compact(self.all) + "\n", "utf-8")
        partial.replace(self._path)


def _compact(value: Any, depth: int = 0) -> str:
    """JSON with one line for each list, such as the rounds of a contender."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    inner = " " * (depth + 1)
    items = (f"{inner}{json.dumps(k)}: {_compact(v, depth + 1)}" for k, v in value.items())
    return "{\n" + ",\n".join(items) + "\n" + " " * depth + "}"

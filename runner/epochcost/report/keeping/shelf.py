"""A folder of kept values: one for each name, good for one key.

The key says everything that a value follows from; a value kept under another key counts as none.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def digest(*parts: Any) -> str:
    """A key of JSON values; raises TypeError on a value that JSON does not know."""
    text = json.dumps(parts, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Shelf:
    """Values as JSON, a file for each name; ``used`` are the files that this build asked for."""

    folder: Path
    used: set[str] = field(default_factory=set)

    def read(self, name: str, key: str) -> Any:
        """The value kept for the name; None where the key is another, or the file damaged."""
        try:
            head, body = self._path(name).read_text(encoding="utf-8").split("\n", 1)
            return json.loads(body) if head == _head(key, body) else None
        except (OSError, ValueError):
            return None

    def has(self, name: str, key: str) -> bool:
        """Whether a value is kept for the name under the key, damaged or not."""
        try:
            with self._path(name).open(encoding="utf-8") as file:
                return file.readline().startswith(f"{key} ")
        except (OSError, ValueError):
            return False

    def write(self, name: str, key: str, value: Any) -> None:
        """Keep a value in place of what was kept for the name."""
        body = json.dumps(value, separators=(",", ":"))  # ASCII: paths may hold undecoded bytes
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(name)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(f"{_head(key, body)}\n{body}", encoding="utf-8")
        part.replace(path)

    def tidy(self) -> None:
        """Drop what no read or write has named: the shelf holds one build's values at most."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if path.name not in self.used:
                    path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        file = f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
        self.used.add(file)
        return self.folder / file


def _head(key: str, body: str) -> str:
    return f"{key} {hashlib.sha256(body.encode()).hexdigest()}"

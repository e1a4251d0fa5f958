"""A folder of contents by their own digest, so that equal ones are kept once."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Contents:
    """Bytes by name; ``used`` are the names that this build read or kept."""

    folder: Path
    used: set[str] = field(default_factory=set)

    def keep(self, content: bytes) -> str:
        """Keep bytes and say their name."""
        name = _name(content)
        self.used.add(name)
        if name not in self.names:
            self.folder.mkdir(parents=True, exist_ok=True)
            part = self.folder / f"{name}.{os.getpid()}.part"
            part.write_bytes(content)
            part.replace(self.folder / name)
            self.names.add(name)
        return name

    def read(self, name: str) -> bytes | None:
        """The bytes of a name; None where they are not kept, or were damaged."""
        self.used.add(name)
        try:
            content = (self.folder / name).read_bytes()
        except OSError:
            content = b""
        if _name(content) == name:
            return content
        self.names.discard(name)
        return None

    @cached_property
    def names(self) -> set[str]:
        """What there is, damaged or not."""
        try:
            return {path.name for path in self.folder.iterdir()}
        except OSError:
            return set()

    def tidy(self) -> None:
        """Drop what was neither read nor kept."""
        for name in self.names - self.used:
            (self.folder / name).unlink(missing_ok=True)


def _name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

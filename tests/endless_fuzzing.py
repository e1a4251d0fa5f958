"""Fuzzing of models, specs and comments in turn, without end; finds are kept and counted.

    export PYTHONPATH=tests:runner/onnxstep/tests
    python -m endless_fuzzing [--folder .cache/fuzz] [--count N] [KIND ...]

Each kind is a module that is run with a first number and how many, says what came of them, and ends
with an error at the first that does harm, which it names as ``mutation N`` or ``damage N``. That
number's words are kept in the folder, and the next is gone on with, as after an interruption.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent
# By kind: its module, and how many take about a minute or two.
KINDS = {
    "models": ("fuzzing", 500),
    "specs": ("fuzzing_specs", 300),
    "comments": ("fuzzing_comments", 10_000),
}
# Each module bounds its own work; this is for one that does not end all the same.
_BATCH_SECONDS = 3600


@dataclass(frozen=True)
class Kind:
    """One kind's numbers: those before the next are done."""

    name: str
    folder: Path

    @property
    def next(self) -> int:
        """The first number that is not done."""
        path = self.folder / f"{self.name}.next"
        return int(path.read_text("utf-8")) if path.exists() else 0

    @property
    def found(self) -> int:
        """How many were found to do harm."""
        return len(list(self.folder.glob(f"{self.name}-*.txt")))

    def go_on(self, most: int) -> None:
        """Do so many more, or fewer where one does harm."""
        module, batch = KINDS[self.name]
        first, count = self.next, min(batch, most)
        command = [sys.executable, "-W", "ignore", "-m", module, str(first), str(count)]
        try:
            done = subprocess.run(
                command, cwd=TESTS, capture_output=True, text=True, check=False,
                timeout=_BATCH_SECONDS,
            )  # fmt: skip
            harm, said = done.returncode != 0, done.stdout + done.stderr
        except subprocess.TimeoutExpired as error:
            harm, said = True, f"{error}\n{error.stderr!r}"
        after = first + count
        if harm:
            named = re.findall(r"^(?:mutation|damage) (\d+)$", said, re.M)
            number = int(named[-1]) if named else after - 1
            (self.folder / f"{self.name}-{number}.txt").write_text(said, "utf-8")
            after = number + 1
        (self.folder / f"{self.name}.next").write_text(str(after), "utf-8")


def main() -> None:
    """Go round until interrupted, or until so many of each are done; exit 1 where one did harm."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--folder", type=Path, default=TESTS.parent / ".cache/fuzz")
    arguments.add_argument("--count", type=int, default=sys.maxsize)
    arguments.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND")
    asked = arguments.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    kinds = [Kind(name, asked.folder) for name in asked.kinds or KINDS]
    while left := [kind for kind in kinds if kind.next < asked.count]:
        for kind in left:
            kind.go_on(asked.count - kind.next)
            counts = "; ".join(f"{one.name} {one.next:,}, {one.found} found" for one in kinds)
            sys.stdout.write(f"{counts} ({asked.folder})\n")
            sys.stdout.flush()
    if any(kind.found for kind in kinds):
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

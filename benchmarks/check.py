"""CPU time of `epochcost check` for many and for large spec files, and whether it is linear.

    python benchmarks/check.py [--files 1000]

Copies the project's specs and adds copies of machines and prices under new ids up to the number of
files. Runs the command on half, three quarters and all of these files. Then damages one file at a
time in the ways that take longest to check: a text of a megabyte, ten thousand entries, a hundred
thousand levels. Seconds are CPU time of the whole command, the best of three runs.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ROUNDS = 3
_PROGRAM = (sys.executable, "-c", "from epochcost.cli.app import main; main()", "check")
_PRICE = "p2.xlarge-on-demand-2016-11"
_LARGE: dict[str, Callable[[str], str]] = {
    "a text of a megabyte": lambda text: text + f'notes = "{"x" * (999_000 - len(text))}"\n',
    "10,000 keys": lambda text: text + "".join(f"key{i} = {i}\n" for i in range(10_000)),
    "10,000 components": lambda text: text + '[[components]]\nlabel = "x"\namount = 1\n' * 10_000,
    "10,000 items": lambda text: text + "unconfirmed = [" + '"amount", ' * 10_000 + "]\n",
    "100,000 levels": lambda text: text + f"notes = {'[' * 100_000}{']' * 100_000}\n",
    "10,000 dots": lambda text: text + f"{'.'.join('a' * 10_000)} = 1\n",
    "100,000 lines": lambda text: text + "# comment\n" * 90_000 + "amuont = 1\n",
}


def project(folder: Path, count: int) -> None:
    """Fill a folder with ``count`` valid spec files, which are copies of the project's."""
    shutil.copytree(ROOT / "specs", folder / "specs")
    (folder / "models").symlink_to(ROOT / "models")
    files = [*(folder / "specs").rglob("*.toml")]
    copied = sorted((folder / "specs/prices").rglob("*.toml"))
    copied += sorted((folder / "specs/hardware").rglob("*.toml"))
    for number in range(count - len(files)):
        path, turn = copied[number % len(copied)], number // len(copied)
        text = path.read_text(encoding="utf-8")
        text = re.sub(r'(?m)^id = "(.*)"', rf'id = "\1-{turn}"', text, count=1)
        path.with_name(f"{path.stem}-{turn}.toml").write_text(text, encoding="utf-8")


def seconds(folder: Path) -> tuple[float, str]:
    """CPU seconds of `epochcost check` in ``folder``, and the command's last line."""
    best, last_line = float("inf"), ""
    for _ in range(_ROUNDS):
        before = _used()
        process = subprocess.run(_PROGRAM, cwd=folder, capture_output=True, text=True, check=False)
        best = min(best, _used() - before)
        last_line = process.stderr.strip().splitlines()[-1]
    return best, last_line


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def growth(most: int) -> None:
    """Print the time of growing numbers of files up to ``most``, and of each additional file."""
    points = []
    for count in (most // 2, most * 3 // 4, most):
        with tempfile.TemporaryDirectory() as scratch:
            project(Path(scratch), count)
            best, last_line = seconds(Path(scratch))
            points.append((count, best))
            print(f"{best:6.2f} s  {last_line}", flush=True)
    (few, first), *_, (many, last) = points
    print(f"each file more: {1e3 * (last - first) / (many - few):.2f} ms")


def large() -> None:
    """Print the time of the project's specs with one damaged file, for each kind of damage."""
    for name, damage in _LARGE.items():
        with tempfile.TemporaryDirectory() as scratch:
            project(Path(scratch), 0)
            path = Path(scratch) / f"specs/prices/{_PRICE}.toml"
            path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
            best, last_line = seconds(Path(scratch))
            print(f"{best:6.2f} s  {name}: {last_line}", flush=True)


def main() -> None:
    """Measure many files, then large files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1000)
    options = parser.parse_args()
    growth(options.files)
    large()


if __name__ == "__main__":
    main()

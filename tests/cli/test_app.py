"""The program around its commands: unwritable output, terminals and imports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).with_name("epochcost"))
QUOTE = (PROGRAM, "quote", "--rate", "0.9", "--billing", "whole-hour", "--duration", "428s")


def test_a_full_disk_takes_no_output() -> None:
    """One line says that the output cannot be written, and the exit code is 3."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(QUOTE, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (process.returncode, process.stderr) == (3, "output: No space left on device\n")


def test_a_reader_that_leaves_is_no_error_of_ours() -> None:
    """Output cut off by ``head`` gives no traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(QUOTE, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert "Traceback" not in process.stderr


def test_an_encoding_without_our_signs() -> None:
    """An ASCII terminal shows question marks, not a traceback."""
    command, ascii_only = [*QUOTE, "--currency", "EUR"], os.environ | {"PYTHONIOENCODING": "ascii"}
    process = subprocess.run(command, env=ascii_only, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert "?0.90 per hour" in process.stdout


@pytest.mark.parametrize("width", [20, 80])
def test_a_narrow_terminal_loses_no_cell(width: int) -> None:
    """A table fits a narrow terminal, because its cells are wrapped and not cut."""
    narrow = os.environ | {"COLUMNS": str(width)}
    process = subprocess.run(QUOTE, env=narrow, capture_output=True, text=True, check=False)
    table = process.stdout.partition("\n\n")[2].splitlines()
    assert max(map(len, table)) <= width
    letters = sorted("".join(table).replace(" ", ""))
    wide = subprocess.run(
        QUOTE, env=narrow | {"COLUMNS": "200"}, capture_output=True, text=True, check=False
    )
    assert letters == sorted("".join(wide.stdout.partition("\n\n")[2].split()))


# Runs the program, then prints the imported packages and commands; packages before the mark count
# as not installed.
_IMPORTS = """
import sys
from importlib.abc import MetaPathFinder
mark = sys.argv.index("--")
missing, sys.argv[1:] = sys.argv[1:mark], sys.argv[mark + 1:]
class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Finder())
from epochcost.__main__ import main
try:
    main()
finally:
    names = {name.partition(".")[0] for name in sys.modules}
    names |= {name for name in sys.modules if name.startswith("epochcost.cli.")}
    print(*sorted(names), file=sys.stderr)
"""
_SITE = ("altair", "duckdb", "jinja2", "material", "mkdocs", "vl_convert")
_RUN = ("mlperf_loadgen", "onnxruntime", "psutil", "pynvml", "threadpoolctl")
_HEAVY = {*_SITE, *_RUN, "numpy", "onnx"}


def imported(
    arguments: str, missing: Sequence[str] = (), folder: Path = ROOT
) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run the program with ``missing`` packages, and return its process and imports."""
    process = subprocess.run(
        [sys.executable, "-c", _IMPORTS, *missing, "--", *arguments.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return process, set(process.stderr.splitlines()[-1].split())


def test_help_imports_no_command() -> None:
    """The list of commands imports neither the commands' modules nor pydantic."""
    process, names = imported("--help")
    assert "cheapest" in process.stdout
    assert not names & {*_HEAVY, "pydantic"}
    assert {name for name in names if "." in name} == {
        "epochcost.cli.app",
        "epochcost.cli.interruption",
    }


def test_a_quote_imports_nothing_that_measures_draws_or_differentiates() -> None:
    """A quote imports its own module and packages that read specs, and nothing heavy."""
    process, names = imported("quote --price p2.xlarge-on-demand-2016-11 --duration 428s")
    assert process.returncode == 0, process.stderr
    assert "epochcost.cli.quote" in names
    assert not names & {*_HEAVY, "epochcost.cli.run", "epochcost.cli.diff"}


@pytest.mark.parametrize(
    "arguments",
    [
        "cheapest --model mnist-cnn",
        "check specs/grids",
        pytest.param("diff HEAD HEAD", marks=pytest.mark.slow),
        pytest.param("break-even --own assumed-workstation-1x-a6000", marks=pytest.mark.slow),
        pytest.param("check --budgets", marks=pytest.mark.slow),
        pytest.param("finetune --model llama-3.2-1b --examples 9", marks=pytest.mark.slow),
        "new price --help",
        "prices import --help",
        "schema --help",
    ],
)
def test_what_neither_measures_nor_builds_needs_no_package_for_it(arguments: str) -> None:
    """These commands work without the packages of the site and the runtime."""
    process, names = imported(arguments, (*_SITE, *_RUN))
    assert process.returncode == 0, process.stderr
    assert not names & {*_SITE, *_RUN}


@pytest.mark.parametrize("arguments", ["plan", "run", "ceilings", "new hardware --detect"])
def test_what_measures_names_the_packages_that_it_lacks(arguments: str) -> None:
    """The exit code is 3, and the message names the command that installs the packages."""
    process, _ = imported(arguments, _RUN)
    assert process.returncode == 3
    assert "expected the packages that measure; " in process.stderr
    assert "is not installed: `pip install -r requirements/run.txt`" in process.stderr

"""Choose the project that a command reads or writes: the current folder, or the bundled project.

A project is a folder with `specs/`. The bundled project comes with the package. Commands that read
use it outside of projects. In a subfolder of a project, all commands end with an error.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from epochcost import __version__
from epochcost.cli.terminal import DOCS, RESULTS, say
from epochcost.errors import InputError
from epochcost.execute.folders import optional_cache_folder
from epochcost.specs.catalogue import KINDS, Catalogue
from epochcost.specs.loader import BUNDLED, FOLDER, load_catalogue

if TYPE_CHECKING:
    from epochcost.analysis.inputs import Inputs
    from epochcost.analysis.predicted import Times
    from epochcost.predict.design import Precision


def project_to_read() -> Path:
    """The current folder if it has specs; else print a notice and return the bundled project.

    Raises InputError in a subfolder of a project, because a user there means that project's specs.
    """
    if Path(FOLDER).exists():
        return Path()
    if (above := _project_above()) is not None:
        raise _not_in_project(f"run this command in {above}")
    _print_bundled_notice_once()
    return BUNDLED


@functools.cache
def _print_bundled_notice_once() -> None:
    typer.echo(
        f"No {FOLDER}/ here: reading the specs and results that come with epochcost {__version__}",
        err=True,
    )


def project_to_write() -> Path:
    """The current folder; if it has no specs, raises an InputError that suggests `init`."""
    if not Path(FOLDER).exists():
        above = _project_above()
        make = "make one with `epochcost init DIR` and run this command there"
        raise _not_in_project(make if above is None else f"run this command in {above}")
    return Path()


def _project_above() -> Path | None:
    """The nearest folder above the current folder that has specs of any kind."""
    here = Path.cwd()
    kinds = ((folder, folder / FOLDER / kind) for folder in here.parents for kind in KINDS)
    return next((folder for folder, specs in kinds if specs.is_dir()), None)


def _not_in_project(remedy: str) -> InputError:
    return InputError(f"expected a project, a folder with {FOLDER}/, got {Path.cwd()}: {remedy}")


def catalogue_to_read() -> Catalogue:
    """Load the current folder's specs, else the bundled ones; InputError for invalid specs."""
    return load_catalogue(project_to_read())


def own_catalogue() -> Catalogue:
    """Load the current folder's specs; raises InputError if it has none or invalid ones."""
    return load_catalogue(project_to_write())


def inputs_to_read(results: Path, catalogue: Catalogue | None = None) -> Inputs:
    """Read specs, stored results and cached values; print a line for each unreadable file.

    Raises InputError for invalid specs, and if ``results``, the value of `--results`, is no folder.
    """
    # Imported here, because shells that complete a model's name read specs only.
    from epochcost.analysis.inputs import read_inputs  # noqa: PLC0415

    catalogue = catalogue or catalogue_to_read()
    inputs = read_inputs(catalogue, [_results_to_read(results)], *_docs_and_cache(catalogue))
    _print_problems(inputs.problems)
    return inputs


def times_to_read(
    catalogue: Catalogue, results: Path, workload: str, precision: Precision | None
) -> Times:
    """Times of a workload in ``precision``, or in any precision if that is None.

    Raises InputError for an unknown workload, and for an unreadable table of published times.
    """
    from epochcost.analysis.times import cached_times  # noqa: PLC0415

    folder = _results_to_read(results)
    times = cached_times(catalogue, folder, *_docs_and_cache(catalogue), workload, precision)
    _print_problems(times.problems)
    return times


def _results_to_read(results: Path) -> Path:
    if results == RESULTS:
        return project_to_read() / results
    if not results.is_dir():
        raise InputError(f"--results: expected a folder of results, got {results}")
    return results


def _docs_and_cache(catalogue: Catalogue) -> tuple[Path, Path | None]:
    return catalogue.root / DOCS, optional_cache_folder("answers")


def _print_problems(problems: Iterable[str]) -> None:
    for problem in problems:
        say(problem, err=True)

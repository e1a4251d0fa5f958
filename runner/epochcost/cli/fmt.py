"""`epochcost fmt`: specs in one order and layout, so that differences are changes of content."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def fmt(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Spec files or folders; specs/ here when left out."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; list what would change, exit 1."),
    ] = False,
) -> None:
    """Bring the keys of specs into their order, and the text into one layout; comments stay."""
    from epochcost.specs.loader import check_paths

    checked = check_paths(paths or [Path("specs")])
    faulty = sorted({fault.path for fault in checked.faults})
    for path in faulty:
        typer.echo(f"{path}: left as it is, for it has faults: see epochcost check", err=True)
    changed = [path for path in checked.files if path not in faulty and _lay_out(path, check)]
    for path in changed:
        typer.echo(f"{path}: {'not in the layout' if check else 'laid out'}")
    typer.echo(_summary(len(checked.files), len(changed), len(faulty), check), err=True)
    if faulty or (check and changed):
        raise typer.Exit(1)


def _lay_out(path: Path, check: bool) -> bool:
    """Whether a file is in another layout than ours; it is written unless it is only checked."""
    from epochcost.errors import Fault, SpecError
    from epochcost.results.atomic import write_atomically
    from epochcost.specs.kinds import KINDS
    from epochcost.specs.layout import laid_out
    from epochcost.specs.tree import located, tree_of

    absolute = located(path)
    kind = absolute.relative_to(tree_of(absolute)).parts[0]
    contents = absolute.read_bytes()
    try:
        wanted = laid_out(KINDS[kind], contents.decode()).encode()
    except ValueError as error:
        raise SpecError([Fault(path, 1, 1, str(error))]) from None
    if wanted != contents and not check:
        write_atomically(absolute.resolve(), wanted)
    return wanted != contents


def _summary(files: int, changed: int, faulty: int, check: bool) -> str:
    verb = "to lay out" if check else "laid out"
    return f"{files} files looked at, {changed} {verb}, {faulty} with faults"

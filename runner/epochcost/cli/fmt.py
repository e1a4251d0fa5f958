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
    from epochcost.results.atomic import write_atomically
    from epochcost.specs.loader import check_paths

    checked = check_paths(paths or [Path("specs")])
    left = {fault.path: "it has faults: see epochcost check" for fault in checked.faults}
    wanted = {path: _wanted(path) for path in checked.files if path not in left}
    untidy = {path: text for path, text in wanted.items() if text != path.read_bytes()}
    if not check:
        left |= {path: "it is read-only" for path in untidy if _is_read_only(path)}
    for path in sorted(left):
        typer.echo(f"{path}: left as it is, for {left[path]}", err=True)
    changed = [path for path in untidy if path not in left]
    for path in changed:
        if not check:
            write_atomically(path.resolve(), untidy[path])
        typer.echo(f"{path}: {'not in the layout' if check else 'laid out'}")
    typer.echo(_summary(len(checked.files), len(changed), len(left), check), err=True)
    if left or (check and changed):
        raise typer.Exit(1)


def _wanted(path: Path) -> bytes:
    """What a file is to hold."""
    from epochcost.errors import Fault, SpecError
    from epochcost.specs.kinds import KINDS
    from epochcost.specs.layout import laid_out
    from epochcost.specs.tree import located, tree_of

    absolute = located(path)
    kind = absolute.relative_to(tree_of(absolute)).parts[0]
    try:
        return laid_out(KINDS[kind], absolute.read_bytes().decode()).encode()
    except ValueError as error:
        raise SpecError([Fault(path, 1, 1, str(error))]) from None


def _is_read_only(path: Path) -> bool:
    """Whether nobody may write it: the owner of a folder could put another in its place."""
    return not path.stat().st_mode & 0o222


def _summary(files: int, changed: int, left: int, check: bool) -> str:
    verb = "to lay out" if check else "laid out"
    return f"{files} files looked at, {changed} {verb}, {left} left as they are"

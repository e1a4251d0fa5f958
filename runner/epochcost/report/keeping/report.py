"""What the report adds to a site, kept by what it is made from.

Where the report is built anew, a file that follows from the same as before is taken all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from epochcost.report.additions import Additions, Content, Section, Shown
from epochcost.report.charts.drawing import Drawer
from epochcost.report.injection import plot
from epochcost.report.keeping.contents import Contents
from epochcost.report.keeping.origin import program
from epochcost.report.keeping.shelf import Shelf

_REPORT, _CAUSES = "report", "causes"


@dataclass(frozen=True)
class KeptReport:
    """The additions of one report in a folder; ``noted`` are names of contents by address."""

    drawer: Drawer
    index: Shelf
    contents: Contents
    noted: dict[str, str] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def under(cls, folder: Path, drawer: Drawer) -> KeptReport:
        """What is kept in a folder."""
        return cls(drawer, Shelf(folder / "report"), Contents(folder / "contents"))

    def taken(self, origin: str, build: Callable[[], Additions]) -> Additions | None:
        """What was kept of an origin; ``build`` makes what of it turns out to be damaged."""
        value = self.index.read(_REPORT, origin)
        kept = None if value is None else _Kept(value, self.drawer, self.contents, build)
        if kept is None or not kept.complete():
            return None
        self.contents.used.update(kept.names)
        return kept.additions()

    def noting(self, added: Additions) -> Additions:
        """The additions, each content kept as soon as it is made."""
        return replace(
            added,
            pages={uri: self._noting(uri, one) for uri, one in added.pages.items()},
            files={uri: self._noting(uri, one) for uri, one in added.files.items()},
            figures={name: self._showing(name, one) for name, one in added.figures.items()},
        )

    def keep(self, origin: str, added: Additions) -> None:
        """Keep what was noted, and note what nobody has asked for."""
        for uri, content in (*added.pages.items(), *added.files.items()):
            if uri not in self.noted:
                content()
        for name, shown in added.figures.items():
            if _table(name) not in self.noted:
                shown.table()
        self.index.write(_REPORT, origin, _said(added, self.noted))
        self.index.write(_CAUSES, program(), self.causes)

    @property
    def noticed(self) -> tuple[dict[str, str], dict[str, str], set[str]]:
        """What was noted and used so far, for `join` in another process."""
        return self.noted, self.causes, self.contents.used

    def join(self, noted: Mapping[str, str], causes: Mapping[str, str], used: set[str]) -> None:
        """Take over what another process of this build noted and used."""
        self.noted.update(noted)
        self.causes.update(causes)
        self.contents.used.update(used)

    def tidy(self) -> None:
        """Drop what this build did not use."""
        self.contents.tidy()

    def _noting(self, uri: str, content: Content) -> Content:
        return Content(lambda: self._note(uri, content), content.cause)

    def _showing(self, name: str, shown: Shown) -> Shown:
        table = Content(shown.table, f"table {shown.stamp}")
        return replace(shown, table=lambda: self._note(_table(name), table).decode())

    def _note(self, uri: str, content: Content) -> bytes:
        name = self._known.get(content.cause, "")
        made = self.contents.read(name) if name else None
        if made is None:
            made = content()
            name = self.contents.keep(made)
        self.noted[uri] = name
        if content.cause:
            self.causes[content.cause] = name
        return made

    @cached_property
    def _known(self) -> Mapping[str, str]:
        """Names of contents by their cause, as the last build of the same program kept them."""
        return self.index.read(_CAUSES, program()) or {}


def _table(figure: str) -> str:
    """What stands for an address of a figure's table, which is no file by itself."""
    return f"table {figure}"


def _said(added: Additions, noted: Mapping[str, str]) -> Any:
    """Additions as JSON; `_Kept` reads it."""
    return {
        "pages": {uri: noted[uri] for uri in added.pages},
        "files": {uri: noted[uri] for uri in added.files},
        "results": {uri: str(path) for uri, path in added.results.items()},
        "sections": [[section.title, dict(section.pages)] for section in added.sections],
        "figures": {
            name: [one.stamp, one.label, one.drawing, noted[_table(name)]]
            for name, one in added.figures.items()
        },
        "problems": added.problems,
    }


@dataclass(frozen=True)
class _Kept:
    """Additions as they were kept, each content read when it is asked for."""

    value: Mapping[str, Any]
    drawer: Drawer
    contents: Contents
    build: Callable[[], Additions]

    @property
    def names(self) -> set[str]:
        """Of all contents."""
        tables = (one[3] for one in self.value["figures"].values())
        return {*self.value["pages"].values(), *self.value["files"].values(), *tables}

    def complete(self) -> bool:
        """Whether all of it is there, damaged or not."""
        drawings = {one[2] for one in self.value["figures"].values()}
        return self.names <= self.contents.names and drawings <= self.drawer.names()

    def additions(self) -> Additions:
        """As they were."""
        value = self.value
        return Additions(
            pages={uri: Content(partial(self._page, uri)) for uri in value["pages"]},
            files={uri: Content(partial(self._file, uri)) for uri in value["files"]},
            results={uri: Path(path) for uri, path in value["results"].items()},
            sections=tuple(Section(title, pages) for title, pages in value["sections"]),
            figures={name: self._shown(name, one) for name, one in value["figures"].items()},
            problems=tuple(value["problems"]),
        )

    @cached_property
    def again(self) -> Additions:
        """The same, built."""
        built = self.build()
        built.draw()
        return built

    def _page(self, uri: str) -> bytes:
        return self._read(self.value["pages"][uri], lambda again: again.pages[uri]())

    def _file(self, uri: str) -> bytes:
        return self._read(self.value["files"][uri], lambda again: again.files[uri]())

    def _shown(self, name: str, said: Sequence[str]) -> Shown:
        stamp, label, drawing, table = said

        def drawn() -> str:
            kept = self.drawer.kept(drawing)
            return self.again.figures[name].plot() if kept is None else plot(label, kept)

        def listed() -> str:
            made = self._read(table, lambda again: again.figures[name].table().encode())
            return made.decode()

        return Shown(stamp, label, drawing, drawn, listed)

    def _read(self, name: str, make: Callable[[Additions], bytes]) -> bytes:
        kept = self.contents.read(name)
        if kept is None:
            kept = make(self.again)
            self.contents.keep(kept)
        return kept

"""Figures become drawings: the spec and its static SVG, kept by a hash of all that shapes them."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from epochcost.report.charts.figure import Figure
from epochcost.report.charts.still import still
from epochcost.report.charts.theme import unchecked

_PACKAGES = ("altair", "vl-convert-python")
# What of the library the pages use.
_EXPORTS = "window.vegaEmbed = vegaEmbed;"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart ready for a page; ``spec`` is compact JSON."""

    spec: str
    svg: str


@dataclass(frozen=True, slots=True)
class Drawer:
    """Draws figures and the chart library once, and reads them from ``folder`` afterwards."""

    folder: Path

    def draw(self, figure: Figure) -> Drawing:
        """The drawing of a figure; Altair and vl-convert are loaded only where none is kept."""
        path = self.drawing(figure)
        kept = _read(path)
        if kept is None:
            kept = _drawn(figure)
            _write(path, json.dumps({"spec": kept.spec, "svg": kept.svg}))
        return kept

    def picture(self, svg: str) -> bytes:
        """An SVG as PNG, a pixel for each of its units."""
        path = self.painting(svg)
        if not path.is_file():
            import vl_convert  # noqa: PLC0415  a kept picture needs no vl-convert

            _write(path, vl_convert.svg_to_png(svg))
        return path.read_bytes()

    def library(self) -> str:
        """Vega, Vega-Lite and vega-embed as one script, the very versions that draw the SVG."""
        path = self.bundle
        if not path.is_file():
            import vl_convert  # noqa: PLC0415  a kept library needs no vl-convert

            _write(path, vl_convert.javascript_bundle(_EXPORTS))
        return path.read_text(encoding="utf-8")

    def kept(self, name: str) -> Drawing | None:
        """The drawing in a file of that name; None where there is none, or a damaged one."""
        return _read(self.folder / name)

    def names(self) -> set[str]:
        """The names of all files that are kept."""
        folder = self.folder
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    def drawing(self, figure: Figure) -> Path:
        """Where the drawing of a figure is kept."""
        return self.folder / f"{_key(repr(figure.chart))}.json"

    def painting(self, svg: str) -> Path:
        """Where the PNG of an SVG is kept."""
        return self.folder / f"{_key(svg)}.png"

    @property
    def bundle(self) -> Path:
        """Where the chart library is kept."""
        return self.folder / f"vega-{version('vl-convert-python')}.js"


def load() -> None:
    """Load what draws, for processes that are forked from this one to share."""
    import altair  # noqa: F401, PLC0415  only what is not kept is drawn
    import vl_convert  # noqa: F401, PLC0415


def _drawn(figure: Figure) -> Drawing:
    from epochcost.report.charts.compiled import svg  # noqa: PLC0415  it loads vl-convert

    with unchecked():
        spec = figure.chart.spec()
    return Drawing(json.dumps(spec, separators=(",", ":")), svg(still(spec)))


def _key(text: str) -> str:
    return hashlib.sha256(f"{_shape()}\n{text}".encode()).hexdigest()


@cache
def _shape() -> str:
    """The versions and the code that turn an input into a drawing."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    code = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return " ".join([*map(version, _PACKAGES), code])


def _read(path: Path) -> Drawing | None:
    """The drawing kept in a file; None where there is none, or a damaged one."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Drawing(fields["spec"], fields["svg"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f"{path.suffix}.{os.getpid()}.part")
    part.write_bytes(content.encode() if isinstance(content, str) else content)
    part.replace(path)

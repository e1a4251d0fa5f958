"""Draw figures; drawings are kept by chart, the code that draws and the packages' versions."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pydantic import TypeAdapter

from epochcost.report.charts.figure import Figure
from epochcost.results.files import require_writable, unwritable, write_atomically
from epochcost.results.kept import Keep

# The parts of the library that pages use.
_EXPORTS = "window.vegaEmbed = vegaEmbed;"
_PLACES = re.compile(r' (?:transform|d|x|y|x1|x2|y1|y2|width|height)="[^"]*"')
_LONG = re.compile(r"-?\d+\.\d{3,}")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart for a page: its Vega-Lite ``spec`` as compact JSON, and its picture."""

    spec: str
    svg: str


_KEPT = Keep("drawing", TypeAdapter(tuple[str, Drawing]), ("report/charts",))
_VERSIONS = [version(package) for package in ("altair", "vl-convert-python")]


@dataclass(frozen=True)
class Drawer:
    """Draw figures, or read their drawings from the cache ``folder``."""

    folder: Path

    def draw(self, figure: Figure) -> Drawing:
        """Return the drawing of a figure; draw it if its file is missing or damaged."""
        return _KEPT.value(self.folder, (_VERSIONS, figure), lambda: _draw(figure))

    def library(self) -> bytes:
        """Vega, Vega-Lite and vega-embed as one script, in the versions that draw the SVG."""
        path = self.folder / f"vega-{version('vl-convert-python')}.js"
        if not path.is_file():
            import vl_convert  # noqa: PLC0415  loaded for drawing only

            require_writable(self.folder, unwritable)
            script = vl_convert.javascript_bundle(_EXPORTS).encode()
            write_atomically(path, script, unwritable)
        return path.read_bytes()


def _draw(figure: Figure) -> Drawing:
    import vl_convert  # noqa: PLC0415  loaded for drawing only
    from altair.utils.schemapi import debug_mode  # noqa: PLC0415

    # Validation of each part takes most of Altair's time.
    with debug_mode(False):
        spec = figure.spec()
    # Labels for screen readers are no part of the picture.
    svg = vl_convert.vegalite_to_svg({**spec, "config": {**spec["config"], "aria": False}})
    return Drawing(json.dumps(spec, separators=(",", ":")), hundredths(svg))


def hundredths(svg: str) -> str:
    """Round the coordinates of an SVG to 0.01 pixels, which halves its size."""
    return _PLACES.sub(
        lambda place: _LONG.sub(lambda number: f"{float(number[0]):.2f}", place[0]), svg
    )

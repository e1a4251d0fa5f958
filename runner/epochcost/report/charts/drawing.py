"""Draw figures; the cache key is the chart, the code that draws and the packages' versions."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path

from epochcost import units
from epochcost.report.charts.figure import Figure
from epochcost.results.files import require_writable, unwritable, write_atomically

_PACKAGES = ("altair", "vl-convert-python")
# Charts show units of time and signs of currencies.
_CODE = (*sorted(Path(__file__).parent.glob("*.py")), Path(units.__file__))
# The parts of the library that pages use.
_EXPORTS = "window.vegaEmbed = vegaEmbed;"
_PLACES = re.compile(r' (?:transform|d|x|y|x1|x2|y1|y2|width|height)="[^"]*"')
_LONG = re.compile(r"-?\d+\.\d{3,}")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart for a page: its Vega-Lite ``spec`` as compact JSON, and its picture."""

    spec: str
    svg: str


@dataclass
class Drawer:
    """Draw figures, or read their drawings from the cache ``folder``."""

    folder: Path
    _used: set[Path] = field(default_factory=set)

    def draw(self, figure: Figure) -> Drawing:
        """Return the drawing of a figure; draw it if its file is missing or damaged."""
        key = f"{_versions_and_code_digest()}\n{figure!r}"
        path = self._file(f"{hashlib.sha256(key.encode()).hexdigest()}.json")
        drawing = _read_drawing(path)
        if drawing is None:
            drawing = _draw(figure)
            self._write(path, json.dumps(asdict(drawing)).encode())
        return drawing

    def library(self) -> bytes:
        """Vega, Vega-Lite and vega-embed as one script, in the versions that draw the SVG."""
        path = self._file(f"vega-{version('vl-convert-python')}.js")
        if not path.is_file():
            import vl_convert  # noqa: PLC0415  loaded for drawing only

            self._write(path, vl_convert.javascript_bundle(_EXPORTS).encode())
        return path.read_bytes()

    def tidy(self) -> None:
        """Delete drawings that this build did not use."""
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if path not in self._used:
                path.unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        path = self.folder / name
        self._used.add(path)
        return path

    def _write(self, path: Path, content: bytes) -> None:
        require_writable(self.folder, unwritable)
        write_atomically(path, content, unwritable)


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


@cache
def _versions_and_code_digest() -> str:
    code = hashlib.sha256(b"".join(path.read_bytes() for path in _CODE)).hexdigest()
    return " ".join([*map(version, _PACKAGES), code])


def _read_drawing(path: Path) -> Drawing | None:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Drawing(fields["spec"], fields["svg"])
    except (OSError, ValueError, KeyError, TypeError):
        return None

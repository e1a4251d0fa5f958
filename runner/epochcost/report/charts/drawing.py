"""Draw figures in separate processes, and cache each drawing by its inputs.

A drawing's file name is a hash of the chart, of the code here, and of the versions of the drawing
packages. The file of the browser's chart library is named by its version.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import version
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from epochcost.errors import CapabilityError
from epochcost.report.charts.figure import Figure

_PACKAGES = ("altair", "vl-convert-python")
# The parts of the library that pages use.
_EXPORTS = "window.vegaEmbed = vegaEmbed;"
_PLACES = re.compile(r' (?:transform|d|x|y|x1|x2|y1|y2|width|height)="[^"]*"')
_LONG = re.compile(r"-?\d+\.\d{3,}")
# Each process holds some 200 MB.
_MOST_PROCESSES = 3


@contextlib.contextmanager
def _interrupt_blocked() -> Iterator[None]:
    """Start processes in the block; they ignore Ctrl-C, even while their interpreters start.

    The build ends these processes itself.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started first, because it unblocks the signal once it runs.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart for a page: its Vega-Lite ``spec`` as compact JSON, and its picture."""

    spec: str
    svg: str


@dataclass
class Drawer:
    """Draw the figures that are not in the cache ``folder``; `close` ends the processes."""

    folder: Path
    _begun: dict[Path, Future[None]] = field(default_factory=dict)
    _used: set[Path] = field(default_factory=set)

    def begin(self, figures: Iterable[Figure]) -> None:
        """Start to draw figures, without waiting for the drawings."""
        self._begin(self._bundle, _write_library)
        for figure in figures:
            self._begin(self._drawing(figure), _draw, figure)

    def draw(self, figure: Figure) -> Drawing:
        """Return the drawing of a figure; draw it again if its file is damaged."""
        path = self._drawing(figure)
        self._wait(path, _draw, figure)
        drawing = _read(path)
        if drawing is None:
            path.unlink(missing_ok=True)
            self._wait(path, _draw, figure)
            drawing = _read(path)
        assert drawing is not None, "a new drawing can be read"
        return drawing

    def library(self) -> bytes:
        """Join Vega, Vega-Lite and vega-embed to one script, in the versions that draw the SVG."""
        self._wait(self._bundle, _write_library)
        return self._bundle.read_bytes()

    def close(self) -> None:
        """End the processes even if they still draw; a later drawing starts new ones."""
        if "_pool" in self.__dict__:
            self._pool.shutdown(cancel_futures=True)
            del self._pool
        self._begun.clear()

    def tidy(self) -> None:
        """Delete drawings that this build did not use."""
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if path not in self._used:
                path.unlink(missing_ok=True)

    def _begin(self, path: Path, work: Callable[..., None], *arguments: object) -> None:
        self._used.add(path)
        if path not in self._begun and not path.is_file():
            with _interrupt_blocked():
                self._begun[path] = self._pool.submit(work, path, *arguments)

    def _wait(self, path: Path, work: Callable[..., None], *arguments: object) -> None:
        self._begin(path, work, *arguments)
        try:
            if path in self._begun:
                self._begun.pop(path).result()
        except BrokenProcessPool:
            raise CapabilityError(
                "expected processes that draw charts; one of them was ended: is there memory left?"
            ) from None
        except OSError as error:
            raise CapabilityError(f"{self.folder}: cannot write: {error.strerror}") from error

    @cached_property
    def _pool(self) -> ProcessPoolExecutor:
        self.folder.mkdir(parents=True, exist_ok=True)
        # Not forked: the drawing code has threads.
        context = multiprocessing.get_context("spawn")
        count = min(os.cpu_count() or 1, _MOST_PROCESSES)
        return ProcessPoolExecutor(count, context, initializer=end_with_parent)

    def _drawing(self, figure: Figure) -> Path:
        return self.folder / f"{_key(repr(figure))}.json"

    @property
    def _bundle(self) -> Path:
        return self.folder / f"vega-{version('vl-convert-python')}.js"


def end_with_parent() -> None:
    """End this process when its parent ends for any reason, but ignore Ctrl-C.

    Ctrl-C at a terminal reaches both processes, and the parent decides.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None, "expected a process that another began"

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _draw(path: Path, figure: Figure) -> None:
    import vl_convert  # noqa: PLC0415  loaded for drawing only
    from altair.utils.schemapi import debug_mode  # noqa: PLC0415

    # Validation of each part takes most of Altair's time.
    with debug_mode(False):
        spec = figure.spec()
    drawing = {
        "spec": json.dumps(spec, separators=(",", ":")),
        "svg": hundredths(vl_convert.vegalite_to_svg(_static_spec(spec))),
    }
    _write(path, json.dumps(drawing).encode())


def hundredths(svg: str) -> str:
    """Round the coordinates of an SVG to 0.01 pixels, which halves its size."""
    return _PLACES.sub(
        lambda place: _LONG.sub(lambda number: f"{float(number[0]):.2f}", place[0]), svg
    )


def _write_library(path: Path) -> None:
    import vl_convert  # noqa: PLC0415  loaded for drawing only

    _write(path, vl_convert.javascript_bundle(_EXPORTS).encode())


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically, because two builds may draw the same figure."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)


def _static_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Remove tooltips and labels for screen readers from a spec: the page describes the chart.

    The picture is the same, and the drawing takes two thirds of the time.
    """
    layers = [
        {
            **layer,
            "encoding": {
                channel: value
                for channel, value in layer["encoding"].items()
                if channel != "tooltip"
            },
        }
        for layer in spec["layer"]
    ]
    return {**spec, "layer": layers, "config": {**spec["config"], "aria": False}}


def _key(text: str) -> str:
    return hashlib.sha256(f"{_drawing_version()}\n{text}".encode()).hexdigest()


@cache
def _drawing_version() -> str:
    """A text that changes if the packages or the code that draw a chart change."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    code = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return " ".join([*map(version, _PACKAGES), code])


def _read(path: Path) -> Drawing | None:
    """Read a drawing from the cache; None if its file is damaged."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Drawing(fields["spec"], fields["svg"])
    except (OSError, ValueError, KeyError, TypeError):
        return None

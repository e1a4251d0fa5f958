"""A publisher of data sets on this machine: offers files, and drops, changes and redirects them."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from epochcost.specs.data import DataFile
from epochcost.specs.reference_data import Dataset

_PIECE_BYTES = 2**20
_DESCRIBED = {
    "id": "made",
    "name": "Made up",
    "example": "a number",
    "shape": "one number",
    "training_examples": 3,
    "held_out_examples": 2,
    "source": "a test",
}


@dataclass
class Offer:
    """What an address answers; ``headers`` go with every answer.

    ``drop_after`` bytes the connection breaks, or with ``stalls`` says nothing more. ``length``
    False: the answer is sent in chunks, none says of how many bytes. ``pause_seconds`` pass before
    each MiB.
    """

    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    ranges: bool = True
    conditions: bool = True
    length: bool = True
    drop_after: int | None = None
    stalls: bool = False
    pause_seconds: float = 0.0


@dataclass
class Publisher:
    """The server's address, what it offers by path, and the requests it got."""

    address: str
    offers: dict[str, Offer]
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def file(self, name: str = "x.csv", content: bytes | None = None, **changed: Any) -> DataFile:
        """A spec of a file that it offers, as what it is or has to be: ``content``."""
        content = self.offers[f"/{name}"].content if content is None else content
        known = {
            "size_bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "address": f"{self.address}/{name}",
        }
        return DataFile.model_validate({"name": name, "part": "both", **known, **changed})

    @property
    def ranges(self) -> list[str | None]:
        """The range that each request asked for."""
        return [headers.get("range") for _, headers in self.requests]


def dataset_of(*files: DataFile, form: str = "csv", **more: Any) -> Dataset:
    """A data set of files."""
    data = {"format": form, "files": [file.model_dump() for file in files], **more}
    for file in data["files"]:
        file.update({key: list(file[key]) for key in ("members", "held_out_members")})
    return Dataset.model_validate({**_DESCRIBED, "data": data})


@contextlib.contextmanager
def published(offers: dict[str, Offer]) -> Iterator[Publisher]:
    """The server while the context lasts."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as server:
        publisher = Publisher(f"http://127.0.0.1:{server.server_port}", offers)
        server.publisher = publisher  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield publisher
        finally:
            publisher.over.set()
            server.shutdown()
            thread.join()


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer as the offer of the path says."""
        publisher: Publisher = self.server.publisher  # type: ignore[attr-defined]
        headers = {name.lower(): value for name, value in self.headers.items()}
        publisher.requests.append((self.path, headers))
        offer = publisher.offers.get(self.path, Offer(status=404))
        start = self._start(offer, headers)
        status = 206 if start else offer.status
        if start is not None and start >= len(offer.content) > 0:
            status, start = 416, len(offer.content)
        self._head(offer, status, start or 0)
        self._body(publisher, offer, offer.content[start or 0 :])
        self.close_connection = True

    def _start(self, offer: Offer, headers: Mapping[str, str]) -> int | None:
        if not offer.ranges or "range" not in headers:
            return None
        condition = headers.get("if-range")
        known = offer.headers.get("ETag") or offer.headers.get("Last-Modified")
        if offer.conditions and condition is not None and condition != known:
            return None
        return int(headers["range"].removeprefix("bytes=").removesuffix("-"))

    def _head(self, offer: Offer, status: int, start: int) -> None:
        self.send_response(status)
        for name, value in offer.headers.items():
            self.send_header(name, value)
        total = len(offer.content)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        if offer.length:
            self.send_header("Content-Length", str(total - start))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _body(self, publisher: Publisher, offer: Offer, content: bytes) -> None:
        sent = content if offer.drop_after is None else content[: offer.drop_after]
        if not offer.length:
            sent = b"%x\r\n%b\r\n" % (len(sent), sent)
            sent += b"" if offer.drop_after is not None else b"0\r\n\r\n"
        with contextlib.suppress(ConnectionError):  # who asked may be killed meanwhile
            for start in range(0, len(sent), _PIECE_BYTES):
                time.sleep(offer.pause_seconds)
                self.wfile.write(sent[start : start + _PIECE_BYTES])
            self.wfile.flush()
        if offer.stalls:
            publisher.over.wait()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""

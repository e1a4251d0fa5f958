"""A local server that publishes data files and may break connections."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from epochcost.specs.reference_data import DataFile, Dataset

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
class Publisher:
    """The server's address, the files that it offers by path, and the requested paths.

    Connections break after ``drop_after`` bytes of a file.
    """

    address: str
    offers: dict[str, bytes]
    requests: list[str] = field(default_factory=list)
    drop_after: int | None = None

    def file(self, name: str = "x.csv", **changed: Any) -> DataFile:
        """The spec of the offered file ``name``, with ``changed`` keys."""
        content = self.offers[f"/{name}"]
        facts = {
            "size_bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "address": f"{self.address}/{name}",
        }
        return DataFile.model_validate({"name": name, "part": "both", **facts, **changed})


def dataset_of(*files: DataFile, form: str = "csv", **more: Any) -> Dataset:
    """A data set with these files."""
    data = {"format": form, "files": [file.model_dump() for file in files], **more}
    for file in data["files"]:
        file.update({key: list(file[key]) for key in ("members", "held_out_members")})
    return Dataset.model_validate({**_DESCRIBED, "data": data})


@contextlib.contextmanager
def published(offers: dict[str, bytes]) -> Iterator[Publisher]:
    """Run the server within the context."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as server:
        publisher = Publisher(f"http://127.0.0.1:{server.server_port}", offers)
        server.publisher = publisher  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield publisher
        finally:
            server.shutdown()
            thread.join()


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the file at the path, or with its first bytes."""
        publisher: Publisher = self.server.publisher  # type: ignore[attr-defined]
        publisher.requests.append(self.path)
        content = publisher.offers.get(self.path)
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write((content or b"")[: publisher.drop_after])
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""

"""Fetching a data set's files from their publisher: the one place that asks the network for data.

What has come is kept when a download stops, with what the server said of the file. The next one
asks for the rest on the condition that nothing changed; where the server offers another file by
then, or knows no ranges, all of it comes again. What a file has to be before it takes its name is
left to ``data_files``.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, cast
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from epochcost import __version__
from epochcost.errors import CapabilityError, InputError
from epochcost.execute.data_files import Held, checked, declared_files, partial_path, place, writing
from epochcost.specs.data import DataFile, DataFormat
from epochcost.specs.reference_data import Dataset
from epochcost.train.datasets import data_path
from epochcost.train.readers import verify

# Hears of a file how many bytes have come, and of how many, where that is known.
Follow = Callable[[str, int, int | None], None]
_SILENCE_SECONDS = 60.0
_MOST_REDIRECTS = 5
_CHUNK_BYTES = 2**18


def fetch_files(dataset: Dataset, folder: Path, follow: Follow) -> Iterator[Held]:
    """Each file of a data set, once it is in its place; one that is there and sound stays.

    Raises InputError where a spec has no address or what comes is not what it says, CapabilityError
    where nothing comes, or not all of it.
    """
    data = declared_files(dataset)
    for file in data.files:
        if file.address is None:
            home = "" if dataset.address is None else f" (its home is {dataset.address})"
            raise InputError(
                f"data set {dataset.id}: expected an address of {file.name} in its spec, found "
                f"none{home}: where you have it, `epochcost data import {dataset.id} PATH`"
            )
    with writing(folder / dataset.id):
        for file in data.files:
            path = data_path(dataset, file, folder)
            there = _sound(path, file)
            if there is None:
                yield Held(file, path, _fetch(file, path, data.format, follow), "fetched")
            else:
                yield Held(file, path, there, "is there")


def _sound(path: Path, declared: DataFile) -> str | None:
    try:
        return verify(path, declared) if path.exists() else None
    except InputError:
        return None


def _fetch(file: DataFile, path: Path, form: DataFormat, follow: Follow) -> str:
    assert file.address is not None, "a fetch begins by looking for those"
    download = _Download(file, file.address, partial_path(path), follow)
    try:
        download.run()
        found = checked(download.partial, file, form)
    except InputError as error:
        download.partial.unlink(missing_ok=True)
        download.note.unlink(missing_ok=True)
        raise InputError(
            f"{error}; nothing was kept of what {file.address} offers: the file was changed there, "
            "or something on the way answers in its place"
        ) from None
    place(download.partial, path)
    download.note.unlink(missing_ok=True)
    return found


@dataclass(frozen=True)
class _Begun:
    """What a server said of the file of which a part is here."""

    address: str
    validator: str | None
    total_bytes: int


@dataclass(frozen=True)
class _Download:
    """One file, or the rest of it, on its way into ``partial``."""

    file: DataFile
    address: str
    partial: Path
    follow: Follow

    @property
    def note(self) -> Path:
        """Where it says what was begun."""
        return self.partial.with_name(f"{self.partial.name}.json")

    def run(self) -> None:
        """Go on with what is here, or begin; raises InputError for a file of another length."""
        begun = self._begun()
        held = self.partial.stat().st_size if begun is not None else 0
        if begun is not None and held == begun.total_bytes:
            return
        response, start = self._answer(begun, held)
        with response:
            total = begun.total_bytes if begun is not None and start else response.length
            if total is not None:
                self._require_length(total)
            if not start:
                self._write_note(_validator(response), total)
            self._receive(response, start, total or self.file.size_bytes)

    def _begun(self) -> _Begun | None:
        try:
            begun = _Begun(**json.loads(self.note.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        same = begun.address == self.address and self.partial.exists()
        same = same and self.file.size_bytes in (None, begun.total_bytes)
        # Of the length alone nothing follows: another file may have it.
        vouched = begun.validator is not None or self.file.sha256 is not None
        return begun if same and vouched else None

    def _write_note(self, validator: str | None, total: int | None) -> None:
        self.partial.unlink(missing_ok=True)
        if total is not None:
            begun = asdict(_Begun(self.address, validator, total))
            self.note.write_text(json.dumps(begun), encoding="utf-8")

    def _answer(self, begun: _Begun | None, held: int) -> tuple[http.client.HTTPResponse, int]:
        """What the server sends, and from which byte on that is."""
        try:
            if begun is not None and held:
                response = _ask_for_rest(begun, held)
                if response is not None:
                    return response, held if response.status == HTTPStatus.PARTIAL_CONTENT else 0
            return _ask(self.address, {}), 0
        except HTTPError as error:
            error.close()
            raise CapabilityError(f"{self.address}: {_refusal(error)}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise CapabilityError(
                f"{self.address}: expected a server that answers, got {_reason(error)}: when the "
                "network is there, run the same command again"
            ) from None

    def _receive(
        self, response: http.client.HTTPResponse, start: int, expected: int | None
    ) -> None:
        come, end = start, "the end"
        with self.partial.open("ab" if start else "wb") as out:
            self.follow(self.file.name, come, expected)
            try:
                for chunk in _chunks(response):
                    come += len(chunk)
                    if self.file.size_bytes is not None and come > self.file.size_bytes:
                        self._require_length(come)
                    out.write(chunk)
                    self.follow(self.file.name, come, expected)
            except _DroppedError as error:
                end = str(error)
        if end != "the end" or come != (expected or come):
            wanted = "the whole file" if expected is None else f"{expected:,} bytes"
            raise CapabilityError(
                f"{self.address}: expected {wanted}, got {come:,} bytes and then {end}: run the "
                "same command again, which goes on from there where the server lets it"
            )

    def _require_length(self, got: int) -> None:
        expected = self.file.size_bytes
        if expected is not None and got != expected:
            raise InputError(f"{self.file.name}: expected {expected:,} bytes, got {got:,} or more")


def _ask_for_rest(begun: _Begun, held: int) -> http.client.HTTPResponse | None:
    """The rest, or all of a file that has changed; None where that has to be asked for."""
    condition = {} if begun.validator is None else {"If-Range": begun.validator}
    try:
        response = _ask(begun.address, {"Range": f"bytes={held}-", **condition})
    except HTTPError as error:
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        return None
    rest = f"bytes {held}-{begun.total_bytes - 1}/{begun.total_bytes}"
    # A server may know no conditions.
    same = (response.headers["Content-Range"], _validator(response)) == (rest, begun.validator)
    if response.status == HTTPStatus.PARTIAL_CONTENT and not same:
        response.close()
        return None
    return response


def _ask(address: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
    agent = {"User-Agent": f"epochcost/{__version__}"}
    request = Request(address, headers={**agent, **headers})  # noqa: S310
    response = build_opener(_Redirects).open(request, timeout=_SILENCE_SECONDS)
    return cast("http.client.HTTPResponse", response)


def _validator(response: http.client.HTTPResponse) -> str | None:
    """What changes with the file: its strong ETag, else the time of its last change."""
    tag = response.headers["ETag"]
    strong = tag is not None and not tag.startswith("W/")
    return tag if strong else response.headers["Last-Modified"]


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while chunk := response.read1(_CHUNK_BYTES):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise _DroppedError(_reason(error)) from None


class _DroppedError(Exception):
    """The connection broke; its message says how."""


class _Redirects(HTTPRedirectHandler):
    """Follows a few redirects, none of which gives up encryption or leads from http elsewhere."""

    max_redirections = _MOST_REDIRECTS

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        """As the base's, within these bounds; raises HTTPError beyond."""
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        encrypted = before.scheme == after.scheme == "https"
        one_host = before.scheme == "http" and before.hostname == after.hostname
        if not encrypted and not (one_host and after.scheme in {"http", "https"}):
            raise HTTPError(newurl, code, f"one to {newurl}", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _refusal(error: HTTPError) -> str:
    redirect = HTTPStatus.MULTIPLE_CHOICES <= error.code < HTTPStatus.BAD_REQUEST
    allowed = f" or {_MOST_REDIRECTS} redirects with https or on one host" if redirect else ""
    got = f"{error.code} {str(error.reason).splitlines()[0]}"
    return (
        f"expected the file{allowed}, got {got}: try again later, or see whether its publisher "
        "moved it; `epochcost data import` takes one at hand"
    )


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        return f"nothing for {_SILENCE_SECONDS:g} s"
    return str(getattr(reason, "strerror", None) or reason) or type(reason).__name__

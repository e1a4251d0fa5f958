"""Load a folder of specs as a catalogue, or report all faults of all files at once.

The folder has a subfolder for each kind. It may also contain Markdown, hidden files, editors'
backups, and CSV files of observations, traces and token prices.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, permutations
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import epochcost
from epochcost.errors import Fault, InputError, SpecError
from epochcost.specs.api import ApiPrice, ApiTable
from epochcost.specs.base import NamedSpec, PricedSpec, SpecT
from epochcost.specs.catalogue import (
    FORMER,
    KINDS,
    Catalogue,
    misplaced_kind,
    remove_former_keys,
    with_distinct_names,
)
from epochcost.specs.document import Document, display_path, read
from epochcost.specs.findings import MOST_FINDINGS, Finding, validate
from epochcost.specs.hardware import Device, Hardware, accelerator_doubts, device_doubts
from epochcost.specs.price import Price
from epochcost.specs.prices.api_table import ApiRow, api_doubts, read_api_prices
from epochcost.specs.prices.doubts import owned_doubts, rented_doubts
from epochcost.specs.published import Published
from epochcost.specs.references import (
    FILE_KEYS,
    JudgeGraph,
    Neighbours,
    by_kind_and_id,
    cross_check,
)
from epochcost.specs.wording import KeyPath, describe, printable, suggest_or_list

FOLDER = "specs"
# A copy of this repository's specs and models in the package, for users without a project.
BUNDLED = Path(epochcost.__file__).parent / "bundled"
_DEMAND = f"expected .toml files in folders {', '.join(f'{FOLDER}/{kind}' for kind in KINDS)}"
_REMEDY = f"run this in the folder with {FOLDER}/ and models/"


# A spec, and its file or its row in a table of token prices.
_PlacedSpec = tuple[Document | ApiRow, NamedSpec]
# Findings about each spec, by its class and id.
_Findings = dict[tuple[type[NamedSpec], str], list[Finding]]


class SpecFile(NamedTuple):
    """A spec file, and the kind that its folder names."""

    kind: str
    path: Path


def _existing_absolute_path(path: Path) -> Path:
    try:
        path.lstat()
        # A link at the end of the path stays, so that messages name the requested file.
        return path.parent.resolve() / path.name if path.name.strip(".") else path.resolve()
    except OSError as error:
        demand = f"expected a file or folder of specs, got: {error.strerror}"
        raise InputError(f"{printable(str(path))}: {demand}") from error


def _specs_folder_of(path: Path) -> Path:
    if (path / FOLDER).is_dir():
        return path / FOLDER
    for folder in (path, *path.parents):
        if folder.name == FOLDER:
            return folder
    return path if path.is_dir() else path.parent


def walk(tree: Path) -> Iterator[SpecFile | Fault]:
    """Yield the spec files below a folder by name, and a fault for each misplaced entry."""
    for entry in _entries(tree):
        if isinstance(entry, Fault):
            yield entry
        elif entry.name in FORMER:
            continue
        elif entry.name in KINDS and entry.is_dir(follow_symlinks=False):
            yield from _files(entry.name, Path(entry.path))
        else:
            yield Fault(Path(entry.path), 1, 1, _misplaced(entry))


def _files(kind: str, folder: Path) -> Iterator[SpecFile | Fault]:
    pending = [*reversed(_entries(folder))]
    while pending:
        entry = pending.pop()
        if isinstance(entry, Fault):
            yield entry
        elif (
            kind in FILE_KEYS
            and entry.name.endswith(".csv")
            and entry.is_file(follow_symlinks=False)
        ):
            continue
        elif (is_folder := entry.is_dir(follow_symlinks=False)) == entry.name.endswith(".toml"):
            sort = "folder" if is_folder else "link" if entry.is_symlink() else "file"
            message = f"should be a .toml file, got the {sort} {describe(entry.name)}"
            yield Fault(Path(entry.path), 1, 1, message)
        elif is_folder:
            pending.extend(reversed(_entries(Path(entry.path))))
        else:
            yield SpecFile(kind, Path(entry.path))


def _entries(folder: Path) -> Sequence[os.DirEntry[str] | Fault]:
    try:
        with os.scandir(folder) as entries:
            listed = [
                entry
                for entry in entries
                if not entry.name.startswith(".") and not entry.name.endswith(("~", ".md"))
            ]
    except OSError as error:
        return [Fault(folder, 1, 1, f"cannot be read: {error.strerror}")]
    return sorted(listed, key=lambda entry: entry.name)


def _misplaced(entry: os.DirEntry[str]) -> str:
    if entry.name in KINDS:
        return f"{entry.name}: should be a folder, got a file or a link"
    if entry.name.endswith(".toml"):
        return "should be in the folder of its kind: " + ", ".join(KINDS)
    return f"unknown folder or file {describe(entry.name)}{suggest_or_list(entry.name, KINDS)}"


@dataclass(frozen=True)
class CheckReport:
    """The checked files, their faults and implausible values (``doubts``), by path and line."""

    files: tuple[SpecFile, ...]
    faults: tuple[Fault, ...]
    doubts: tuple[Fault, ...]

    def sound_files(self, kind: str) -> tuple[Path, ...]:
        """The checked files of one kind without faults."""
        faulty = {fault.path for fault in self.faults}
        return tuple(
            file.path for file in self.files if file.kind == kind and file.path not in faulty
        )


class _Loaded(NamedTuple):
    files: tuple[SpecFile, ...]
    specs: tuple[_PlacedSpec, ...]
    faults: tuple[Fault, ...]
    doubts: tuple[Fault, ...]


def load_catalogue(root: Path) -> Catalogue:
    """Load ``root/specs``; raises SpecError with all faults, or InputError if there is no spec."""
    tree = root.absolute() / FOLDER
    if not tree.is_dir():
        raise InputError(f"{display_path(tree)}: {_DEMAND}, found no such folder: {_REMEDY}")
    loaded = _load_specs(tree)
    if loaded.faults:
        raise SpecError(_as_shown(loaded.faults))
    if not loaded.files:
        raise InputError(f"{display_path(tree)}: {_DEMAND}, found no spec there")
    files = {
        f"{place.kind}/{spec.id}": place.path
        for place, spec in loaded.specs
        if isinstance(place, Document)
    }
    specs: dict[str, Any] = {
        name.replace("-", "_"): _by_id(_of_kind(loaded.specs, kind)) for name, kind in KINDS.items()
    }
    devices = {name: device for device in specs["devices"].values() for name in device.names}
    machines = (machine.completed(devices) for machine in specs["hardware"].values())
    specs["hardware"] = with_distinct_names(_by_id(machines))
    return Catalogue(root=root, files=MappingProxyType(files), **specs)


def check_paths(paths: Iterable[Path], judge_graph: JudgeGraph | None = None) -> CheckReport:
    """Check the spec files at and below ``paths``, with their references to other specs.

    ``judge_graph`` checks ONNX files. Raises InputError if there is no spec at one of ``paths``.
    """
    requested = [_existing_absolute_path(path) for path in paths]
    files: set[SpecFile] = set()
    faults: set[Fault] = set()
    doubts: set[Fault] = set()
    tables: dict[Path, Path] = {}
    for tree in sorted({_specs_folder_of(path) for path in requested}):
        loaded = _load_specs(tree, judge_graph)
        files.update(loaded.files)
        faults.update(loaded.faults)
        doubts.update(loaded.doubts)
        tables.update(_tables_of_apis(loaded.specs))
    places = {file.path for file in files} | {fault.path for fault in faults}
    for path in requested:
        if not any(place.is_relative_to(path) for place in places):
            raise InputError(f"{display_path(path)}: {_DEMAND}, found no spec there")
    asked = {file for file in files if _is_asked(file.path, requested)}
    # The rows of a table of APIs are checked with its spec.
    requested += [tables[file.path] for file in asked if file.path in tables]
    return CheckReport(
        tuple(sorted(file._replace(path=display_path(file.path)) for file in asked)),
        _as_shown(fault for fault in faults if _is_asked(fault.path, requested)),
        _as_shown(doubt for doubt in doubts if _is_asked(doubt.path, requested)),
    )


def _load_specs(specs_folder: Path, judge_graph: JudgeGraph | None = None) -> _Loaded:
    walked = tuple(walk(specs_folder))
    files = tuple(item for item in walked if isinstance(item, SpecFile))
    faults = [item for item in walked if isinstance(item, Fault)]
    places = [fault.path.relative_to(specs_folder).parts for fault in faults]
    unseen = {kind for place in places for kind in place[:1]}
    documents: list[Document] = []
    for file in files:
        try:
            documents.append(read(file.kind, file.path, specs_folder))
        except SpecError as error:
            unseen.add(file.kind)
            faults.extend(error.faults)
    graphs = specs_folder.parent / "models"
    context = Neighbours(
        by_kind_and_id(documents), graphs if graphs.is_dir() else None, unseen, judge_graph
    )
    specs: list[_PlacedSpec] = []
    for document in documents:
        spec, findings = _validate_document(document, context)
        faults.extend(map(document.fault, findings))
        if spec and not findings:
            specs.append((document, spec))
    faults.extend(_shared_device_names(specs))
    for row in _api_rows(specs, None if "models" in unseen else context.documents["models"]):
        if isinstance(row, Fault):
            faults.append(row)
        else:
            specs.append((row, row.price))
    findings_of = _implausible_values(specs)
    doubts = [
        place.fault(each) for place, spec in specs for each in findings_of[type(spec), spec.id]
    ]
    marked = ((place, _marked(spec, findings_of[type(spec), spec.id])) for place, spec in specs)
    doubts += _unnamed_csv_files(specs_folder, documents, FILE_KEYS.keys() - unseen)
    return _Loaded(files, tuple(marked), tuple(faults), tuple(doubts))


def _unnamed_csv_files(
    specs_folder: Path, documents: Iterable[Document], kinds: Collection[str]
) -> Iterator[Fault]:
    named = {
        document.path.parent / name
        for document in documents
        for key in FILE_KEYS.get(document.kind, ())
        if isinstance(name := document.table.get(key), str)
    }
    for kind in kinds:
        for path in (specs_folder / kind).rglob("[!.]*.csv"):
            if path not in named:
                advice = f'write a .toml file with {FILE_KEYS[kind][0]} = "{path.name}"'
                yield Fault(path, 1, 1, f"no spec in its folder names this file: {advice}")


def _shared_device_names(specs: Iterable[_PlacedSpec]) -> Iterator[Fault]:
    holders: dict[str, list[tuple[Document | ApiRow, KeyPath]]] = defaultdict(list)
    for place, spec in specs:
        for name, key in spec.names.items() if isinstance(spec, Device) else ():
            holders[name].append((place, key))
    for name, places in holders.items():
        for (place, key), (other, other_key) in permutations(places, 2):
            got = f"got {describe(name)}, as in {other.place(other_key)}"
            yield place.fault(Finding(key, f"should be the name of one device only, {got}"))


def _marked(spec: NamedSpec, doubts: Iterable[Finding]) -> NamedSpec:
    """A copy of a price that has its ``doubts``; any other spec."""
    reason = "; ".join(doubt.message for doubt in doubts)
    return spec.doubted(reason) if isinstance(spec, PricedSpec) and reason else spec


def _implausible_values(specs: Sequence[_PlacedSpec]) -> _Findings:
    """Find the implausible values of prices, machines and devices."""
    findings: _Findings = defaultdict(list)
    devices = {name: device for device in _of_kind(specs, Device) for name in device.names}
    for device, finding in device_doubts(_of_kind(specs, Device)):
        findings[Device, device.id].append(finding)
    timed = {row.hardware for source in _of_kind(specs, Published) for row in source.timings}
    hardware = _by_id(_of_kind(specs, Hardware))
    for machine in hardware.values():
        chips = accelerator_doubts(machine, devices, timed=machine.id in timed)
        findings[Hardware, machine.id].extend(chips)
    prices = [price for price in _of_kind(specs, Price) if price.hardware in hardware]
    for price in prices:
        findings[Price, price.id].extend(owned_doubts(price, hardware[price.hardware]))
    for name, reason in rented_doubts(prices, hardware).items():
        findings[Price, name].append(reason)
    for name, reason in api_doubts(_of_kind(specs, ApiPrice)).items():
        findings[ApiPrice, name].append(reason)
    return findings


def _tables_of_apis(specs: Iterable[_PlacedSpec]) -> dict[Path, Path]:
    """The CSV file of each spec of a table of APIs, by the path of the spec."""
    return {
        place.path: place.path.with_name(spec.table)
        for place, spec in specs
        if isinstance(spec, ApiTable)
    }


def _api_rows(
    specs: Sequence[_PlacedSpec], model_ids: Collection[str] | None
) -> Iterator[ApiRow | Fault]:
    """The rows of the CSV tables of APIs, and their faults, such as the id of another API."""
    places = {spec.id: place for place, spec in specs if isinstance(spec, ApiPrice)}
    tables = _tables_of_apis(specs).values()
    for row in chain.from_iterable(read_api_prices(path, model_ids) for path in tables):
        if isinstance(row, Fault) or (first := places.setdefault(row.price.id, row)) is row:
            yield row
        else:
            got = f"got {row.price.id}, as in {first.place(('id',))}"
            demand = "provider and name: should differ from those of every other API"
            yield row.fault(Finding((), f"{demand}, {got}: delete one of the two"))


def _validate_document(
    document: Document, context: Neighbours
) -> tuple[NamedSpec | None, tuple[Finding, ...]]:
    remove_former_keys(document.kind, document.table)
    if meant := misplaced_kind(document.kind, document.table):
        advice = f"has the keys of a spec in {FOLDER}/{meant}: move the file to that folder"
        return None, (Finding((), advice),)
    judged = validate(KINDS[document.kind], document.table)
    alone = judged if isinstance(judged, tuple) else ()
    wrong = {finding.key for finding in alone}
    # A key with a fault of its own, or in a table with one, needs no comparison with other specs.
    cross_findings = (
        finding
        for finding in cross_check(document, context)
        if not any(finding.key[:length] in wrong for length in range(1, len(finding.key) + 1))
    )
    findings = (*alone, *islice(cross_findings, MOST_FINDINGS))
    if next(cross_findings, None) is not None:
        findings = (*findings, Finding((), "more faults between specs: correct these first"))
    return None if isinstance(judged, tuple) else judged, findings


def _of_kind(specs: Iterable[_PlacedSpec], kind: type[SpecT]) -> list[SpecT]:
    return [spec for _, spec in specs if isinstance(spec, kind)]


def _by_id(specs: Iterable[SpecT]) -> Mapping[str, SpecT]:
    return MappingProxyType({spec.id: spec for spec in specs})


def _as_shown(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(sorted(replace(fault, path=display_path(fault.path)) for fault in faults))


def _is_asked(path: Path, requested: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in requested)

"""External data: tensors kept in files beside the model, read only from inside its folder.

Owns the confinement, the limit of size, and which files there are; the format is read by onnx's own
helper.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from epochcost.errors import ModelError
from epochcost.graphs.tensors import one_line, stored_tensors


def load_external_data(model: onnx.ModelProto, folder: Path | None, limit_bytes: int) -> None:
    """Read every external tensor into the model; with no folder, external data is refused.

    Raises ModelError for a location outside the folder (absolute, through ``..`` or a symbolic
    link), a missing file, a range beyond it, and a model larger than ``limit_bytes`` in all.
    """
    room_bytes = limit_bytes - model.ByteSize()
    for tensor in stored_tensors(model):
        if uses_external_data(tensor):
            if folder is None:
                raise ModelError(f"tensor {tensor.name!r}: external data needs a file to stand by")
            room_bytes -= _load(tensor, folder, room_bytes)


def data_files(model: onnx.ModelProto, folder: Path) -> tuple[str, ...]:
    """The files of a model's external tensors, relative to its folder, in which all must be.

    Nothing of them is read. Raises ModelError as `load_external_data` does.
    """
    files: dict[str, None] = {}
    for tensor in stored_tensors(model):
        if uses_external_data(tensor) and (location := _location(tensor)) not in files:
            _confined(folder, location, tensor.name)
            files[location] = None
    return tuple(files)


def _location(tensor: onnx.TensorProto) -> str:
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def _load(tensor: onnx.TensorProto, folder: Path, room_bytes: int) -> int:
    """Read one tensor's data; how many bytes it was."""
    try:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        file = _confined(folder, _location(tensor), tensor.name)
        demanded_bytes = int(entries.get("length", file.stat().st_size))
        if demanded_bytes > room_bytes:
            raise ModelError(
                f"tensor {tensor.name!r}: its external data makes the model larger than protobuf's "
                "2 GB; keep the weights out of the graph as docs/adding-a-model.md says"
            )
        load_external_data_for_tensor(tensor, str(folder))
    except (onnx.checker.ValidationError, ValueError, OSError) as error:
        raise ModelError(f"tensor {tensor.name!r}: external data: {one_line(error)}") from None
    return len(tensor.raw_data)


def _confined(folder: Path, location: str, name: str) -> Path:
    """The regular file at a location inside the folder, or ModelError."""
    where = f"tensor {name!r}: external data: demanded a file inside the model's folder"
    if _escapes(location):
        raise ModelError(f"{where}, named relative to it; got {location!r}")
    file = folder / location
    steps = [file, *file.parents][: len(PurePosixPath(location).parts)]
    if any(step.is_symlink() for step in steps):
        raise ModelError(f"{where}; got the symbolic link {location!r}")
    if not file.is_file():
        raise ModelError(f"{where}; there is no file {location!r}: copy it there")
    return file


def _escapes(location: str) -> bool:
    """Whether a location is empty, absolute or climbs, read as POSIX or as Windows would."""
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    rooted = posix.is_absolute() or windows.anchor != ""
    return rooted or not posix.parts or "\0" in location or ".." in {*posix.parts, *windows.parts}

"""Read untrusted ONNX files: return a checked model, or raise ModelError with one line of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from onnxstep.errors import ModelError
from onnxstep.graphs import importer_quirks as quirks
from onnxstep.graphs.functions import check_calls, inline_functions
from onnxstep.graphs.fused import unfuse
from onnxstep.graphs.inference import check_nodes, infer_shapes, require_operators
from onnxstep.graphs.nodes import DEFAULT_DOMAINS, default_opset
from onnxstep.graphs.tensors import check_tensors, one_line, stored_tensors
from onnxstep.graphs.trial_run import require_end

# Models of older opsets are converted before differentiation.
_CONVERTED_BELOW = 16
# protobuf refuses messages of 2 GiB and more.
MAX_MODEL_BYTES = 2**31 - 1
_HOW_TO_SHRINK = "leave the weights out: see Weightless files in onnxstep's README"


def load_model(path: Path) -> onnx.ModelProto:
    """Read and check an ONNX file, including its external data; return the model.

    Raises ModelError if the file cannot be read, is not valid ONNX, exceeds ``MAX_MODEL_BYTES``
    with its external data, refers to files outside its folder, or declares a tensor of absurd size.
    The message begins with the path.
    """
    try:
        return _checked_model(_read(path), path.parent)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def external_files(path: Path) -> tuple[str, ...]:
    """Paths of a model's external data, relative to the model's folder; the graph is not checked.

    Raises ModelError if the model file is unreadable, too large or not ONNX, and if a data file is
    missing, outside the folder, or too short for its tensors.
    """
    sizes: dict[str, int] = {}
    try:
        for tensor in _external_tensors(_parse(_read(path))):
            location = _external_entries(tensor).get("location", "")
            if location not in sizes:
                file = _file_inside_folder(path.parent, location, tensor.name)
                sizes[location] = file.stat().st_size
            _require_data_within_file(tensor, location, sizes[location])
        return tuple(sizes)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def load_model_bytes(data: bytes) -> onnx.ModelProto:
    """The checked model from the bytes of an ONNX file.

    Raises ModelError as ``load_model`` does, and for external data.
    """
    return _checked_model(data, None)


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            problem = "got something else" if path.exists() else "there is no such file"
            raise ModelError(f"expected an ONNX file; {problem}")
        size_bytes = path.stat().st_size
        if size_bytes > MAX_MODEL_BYTES:
            raise ModelError(
                f"expected at most {MAX_MODEL_BYTES} bytes (protobuf's limit), got {size_bytes}; "
                f"{_HOW_TO_SHRINK}"
            )
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # The path contains a null character.
        raise ModelError(f"is not a path: {error}") from None


def _parse(data: bytes) -> onnx.ModelProto:
    if not data:
        raise ModelError("expected an ONNX model, got an empty file")
    try:
        return onnx.load_model_from_string(data)
    except DecodeError as error:
        raise ModelError(
            f"expected an ONNX model; the file is truncated or is not ONNX ({one_line(error)})"
        ) from None


def _checked_model(data: bytes, folder: Path | None) -> onnx.ModelProto:
    parsed = _parse(data)
    _require_utf8_texts(parsed)
    load_external_data(parsed, folder, MAX_MODEL_BYTES)
    model = unfuse(parsed)
    _check_opsets(model)
    check_calls(model)
    check_nodes(model)
    quirks.complete_header(model)
    quirks.sort_nodes(model)
    quirks.open_dimensions(model)
    quirks.drop_constant_shapes(model)
    # A call may crash or not end, so all are first made in a copy of the process.
    require_end(lambda: _try_onnx_calls(model), "onnx's check of this graph")
    # onnx's checker requires a shape for every output; ONNX Runtime does not.
    quirks.complete_declarations(model, _check_by_onnx)
    check_tensors(model)
    quirks.initializers_apart(model)
    quirks.weights_to_initializers(model)
    return model


def _try_onnx_calls(model: onnx.ModelProto) -> None:
    calls: list[Callable[[onnx.ModelProto], object]] = [
        onnx.checker.check_model,
        # Inlining also inserts the attributes that calls pass to functions.
        lambda parsed: infer_shapes(inline_functions(parsed)),
    ]
    if default_opset(model) < _CONVERTED_BELOW:
        calls.append(
            partial(onnx.version_converter.convert_version, target_version=_CONVERTED_BELOW)
        )
    for call in calls:
        try:
            call(model)
        except MemoryError:
            raise
        except Exception:  # noqa: S110 - load_model reports the error
            pass


def _check_by_onnx(model: onnx.ModelProto) -> None:
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError, TypeError, RuntimeError) as error:
        require_operators(model)
        raise ModelError(f"expected a valid ONNX model; {one_line(error)}") from None


def _require_utf8_texts(message: Message) -> None:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for child in value if field.is_repeated else [value]:
                _require_utf8_texts(child)
        elif field.type == FieldDescriptor.TYPE_STRING:
            # protobuf returns text that is not UTF-8 as bytes.
            for text in value if field.is_repeated else [value]:
                if isinstance(text, bytes):
                    raise ModelError(f"{field.name}: expected text in UTF-8, got {text!r:.80}")


def _check_opsets(model: onnx.ModelProto) -> None:
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in DEFAULT_DOMAINS and opset.version > newest:
            raise ModelError(
                f"expected opset {newest} or older (onnx {onnx.__version__} knows no newer), "
                f"got {opset.version}; export at an older opset or install a newer onnx"
            )


def load_external_data(model: onnx.ModelProto, folder: Path | None, limit_bytes: int) -> None:
    """Read the data of every external tensor into the model; without a folder, refuse such data.

    Raises ModelError for a location that is absolute or contains ``..`` or a symbolic link, for
    missing files or data, and for a model larger than ``limit_bytes``.
    """
    room_bytes = limit_bytes - model.ByteSize()
    for tensor in _external_tensors(model):
        if folder is None:
            raise ModelError(f"tensor {tensor.name!r}: external data needs the model's path")
        room_bytes -= _load_tensor_data(tensor, folder, room_bytes)


def _external_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    return (tensor for tensor in stored_tensors(model) if uses_external_data(tensor))


def _require_data_within_file(tensor: onnx.TensorProto, location: str, file_bytes: int) -> None:
    entries = _external_entries(tensor)
    ends = [entries.get(key, "0") for key in ("offset", "length")]
    if all(map(str.isdecimal, ends)) and sum(map(int, ends)) > file_bytes:
        raise ModelError(
            f"tensor {tensor.name!r}: expected its data up to byte {sum(map(int, ends))} of "
            f"{location!r}, which has {file_bytes}: copy the file that was written with the graph"
        )


def _external_entries(tensor: onnx.TensorProto) -> dict[str, str]:
    # Of entries with the same key, onnx reads the last.
    return {entry.key: entry.value for entry in tensor.external_data}


def _load_tensor_data(tensor: onnx.TensorProto, folder: Path, limit_bytes: int) -> int:
    """Read a tensor's external data into the tensor; return the number of bytes read.

    Raises ModelError if the data has more than ``limit_bytes``.
    """
    try:
        entries = _external_entries(tensor)
        file = _file_inside_folder(folder, entries.get("location", ""), tensor.name)
        demanded_bytes = int(entries.get("length", file.stat().st_size))
        if demanded_bytes > limit_bytes:
            raise ModelError(
                f"tensor {tensor.name!r}: its external data makes the model larger than protobuf's "
                f"2 GB; {_HOW_TO_SHRINK}"
            )
        load_external_data_for_tensor(tensor, str(folder))
    except (onnx.checker.ValidationError, ValueError, OSError) as error:
        raise ModelError(f"tensor {tensor.name!r}: external data: {one_line(error)}") from None
    return len(tensor.raw_data)


def _file_inside_folder(folder: Path, location: str, tensor_name: str) -> Path:
    where = f"tensor {tensor_name!r}: external data: expected a file inside the model's folder"
    if _is_unsafe_location(location):
        raise ModelError(f"{where}, named relative to it, got {location!r}")
    file = folder / location
    steps = [file, *file.parents][: len(PurePosixPath(location).parts)]
    if any(step.is_symlink() for step in steps):
        raise ModelError(f"{where}, got the symbolic link {location!r}")
    if not file.is_file():
        raise ModelError(f"{where}; there is no file {location!r}: copy the file there")
    return file


def _is_unsafe_location(location: str) -> bool:
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    rooted = posix.is_absolute() or windows.anchor != ""
    return rooted or not posix.parts or "\0" in location or ".." in {*posix.parts, *windows.parts}

"""Invalid files give one-line errors and never a crash."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

from graph_text import model_of_text
from onnxstep.errors import ModelError
from onnxstep.graphs import loading
from onnxstep.graphs.loading import external_files, load_model, load_model_bytes

MODELS = Path(__file__).parents[4] / "models"
FILES = {
    name: (MODELS / name).read_bytes()
    for name in ("cifar10_cnn.onnx", "mnist_mlp.onnx", "text_generator_keras.onnx")
}


def ordinary() -> onnx.ModelProto:
    """A model that multiplies its input by four stored weights."""
    return model_of_text(
        "scale (float[batch, 4] x) => (float[batch, 4] y) { y = Mul(x, w) }",
        weights={"w": np.array([1, 2, 3, 4], np.float32)},
    )


def external(folder: Path, location: str, **entries: int) -> Path:
    """Write the model ``ordinary`` with external weights, and return the model's path.

    ``location`` is the file of the weights; ``entries`` are their offset and length.
    """
    model = ordinary()
    onnx.external_data_helper.set_external_data(
        model.graph.initializer[0], location=location, **entries
    )
    model.graph.initializer[0].ClearField("raw_data")
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def whole_lengths(data: bytes) -> set[int]:
    """The lengths, in bytes, to which a serialized model can be cut and stay a valid model.

    The serialized model ``data`` ends with its metadata entries. Each length is that of ``data``
    without some of the last entries, from one to all.
    """
    model = onnx.load_model_from_string(data)
    lengths = set()
    while model.metadata_props:
        del model.metadata_props[-1]
        lengths.add(len(model.SerializeToString(deterministic=True)))
    return lengths


def refused(path: Path) -> str:
    """Assert that loading fails with a single line that begins with ``path``; return the line."""
    with pytest.raises(ModelError) as caught:
        load_model(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", FILES)
def test_model_of_this_project_loads(name: str) -> None:
    """The loader does not change a model of the folder models/."""
    assert load_model(MODELS / name) == onnx.load_model_from_string(FILES[name])


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The error for a missing file says that the file does not exist."""
    assert "there is no such file" in refused(tmp_path / "absent.onnx")


def test_folder_and_pipe_are_no_files(tmp_path: Path) -> None:
    """Only regular files are opened, because reading a pipe might never end."""
    os.mkfifo(tmp_path / "pipe.onnx")
    assert "something else" in refused(tmp_path)
    assert "something else" in refused(tmp_path / "pipe.onnx")


def test_unreadable_path_is_refused() -> None:
    """A path with a null character is refused."""
    with pytest.raises(ModelError):
        load_model(Path("a\0b.onnx"))


def test_empty_file_is_refused(tmp_path: Path) -> None:
    """The error for an empty file says that it is empty."""
    (tmp_path / "empty.onnx").touch()
    assert "empty file" in refused(tmp_path / "empty.onnx")


def test_file_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    """A sparse file of 2 GiB is refused without reading it."""
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(loading.MAX_MODEL_BYTES + 1)
    assert "at most 2147483647 bytes" in refused(path)


@pytest.mark.parametrize("name", FILES)
def test_every_truncation_is_refused(name: str, tmp_path: Path) -> None:
    """A truncated file is refused, unless the cut is at the end of a metadata entry."""
    data = FILES[name]
    path = tmp_path / "short.onnx"
    for length in sorted({*range(0, len(data), 37)} - whole_lengths(data)):
        path.write_bytes(data[:length])
        refused(path)


def test_opset_of_the_future_is_refused(tmp_path: Path) -> None:
    """An opset that onnx does not know yet is refused."""
    model = ordinary()
    model.opset_import[0].version = 999
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert "got 999" in refused(tmp_path / "m.onnx")


@pytest.mark.parametrize("sizes", [[2**20, 2**21], [2**62, 2**62], [-2, 4]])
def test_absurd_shape_is_refused(sizes: list[int]) -> None:
    """A declared shape that is negative or larger than any memory is refused."""
    model = ordinary()
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, sizes)
    model.graph.input[0].CopyFrom(value)
    with pytest.raises(ModelError, match="tensor 'x'"):
        load_model_bytes(model.SerializeToString())


@pytest.mark.parametrize("size", [3, 5])
def test_stored_data_must_fill_its_shape(size: int) -> None:
    """An initializer whose stored data has too few or too many values is refused."""
    model = ordinary()
    model.graph.initializer[0].dims[0] = size
    with pytest.raises(ModelError, match="w"):
        load_model_bytes(model.SerializeToString())


def test_unknown_data_type_is_refused() -> None:
    """A type number that ONNX does not define is refused."""
    model = ordinary()
    model.graph.input[0].type.tensor_type.elem_type = 69
    with pytest.raises(ModelError, match="got 69"):
        load_model_bytes(model.SerializeToString())


def test_external_data_inside_the_folder_is_read(tmp_path: Path) -> None:
    """The loaded model contains the external weights and no reference to their file."""
    values = np.arange(4, dtype=np.float32)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"pad!" + values.tobytes())
    path = external(tmp_path, "sub/w.bin", offset=4, length=16)
    stored = load_model(path).graph.initializer[0]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(stored), values)
    assert not onnx.external_data_helper.uses_external_data(stored)


LOCATIONS = ["../w.bin", "sub/../../w.bin", "/etc/hostname", "C:\\w.bin", "..\\w.bin", "", "\0"]


@pytest.mark.parametrize("location", LOCATIONS)
def test_external_data_stays_in_the_folder(tmp_path: Path, location: str) -> None:
    """External data whose location is outside the model's folder is refused."""
    (tmp_path / "w.bin").write_bytes(bytes(16))
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    assert "inside the model's folder" in refused(external(folder, location))


def test_the_last_of_two_locations_is_checked(tmp_path: Path) -> None:
    """Of two locations of a tensor, the last is checked, since onnx reads that file."""
    folder = tmp_path / "model"
    folder.mkdir()
    for place in (tmp_path, folder):
        (place / "w.bin").write_bytes(bytes(16))
    path = external(folder, "w.bin")
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data.add(key="location", value="../w.bin")
    path.write_bytes(model.SerializeToString())
    assert "inside the model's folder" in refused(path)


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_external_data_through_a_link_is_refused(tmp_path: Path, linked: str) -> None:
    """External data is refused if its file, or a folder above the file, is a symbolic link."""
    outside, folder = tmp_path / "outside", tmp_path / "model"
    outside.mkdir()
    folder.mkdir()
    (outside / "w.bin").write_bytes(bytes(16))
    source, location = {
        "file": (outside / "w.bin", "w.bin"),
        "folder": (outside, "sub/w.bin"),
    }[linked]
    (folder / location.split("/")[0]).symlink_to(source)
    assert "symbolic link" in refused(external(folder, location))


@pytest.mark.parametrize(
    "entries", [{"offset": 999}, {"length": 999}, {"offset": 8, "length": 16}, {"length": -1}]
)
def test_external_range_must_be_in_the_file(tmp_path: Path, entries: dict[str, int]) -> None:
    """External data beyond the end of its file is refused."""
    (tmp_path / "w.bin").write_bytes(bytes(16))
    assert "external data" in refused(external(tmp_path, "w.bin", **entries))


def test_a_range_is_judged_without_reading(tmp_path: Path) -> None:
    """``external_files`` refuses a weights file that is too short, without reading the file."""
    (tmp_path / "w.bin").write_bytes(bytes(16))
    assert external_files(external(tmp_path, "w.bin", offset=0, length=16)) == ("w.bin",)
    with pytest.raises(ModelError, match=r"up to byte 24 of 'w\.bin', which has 16"):
        external_files(external(tmp_path, "w.bin", offset=8, length=16))


def test_external_data_counts_toward_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small graph is refused if its external weights exceed the limit."""
    (tmp_path / "w.bin").write_bytes(bytes(4096))
    monkeypatch.setattr(loading, "MAX_MODEL_BYTES", 4096)
    assert "2 GB" in refused(external(tmp_path, "w.bin"))


def test_bytes_have_no_folder_for_external_data(tmp_path: Path) -> None:
    """External data is refused if a model comes from bytes instead of a file."""
    with pytest.raises(ModelError, match="needs the model"):
        load_model_bytes(external(tmp_path, "w.bin").read_bytes())


def test_a_name_that_is_no_text_is_refused() -> None:
    """A name that is not UTF-8 is refused."""
    data = ordinary().SerializeToString().replace(b"w", b"\xff")
    with pytest.raises(ModelError, match="UTF-8"):
        load_model_bytes(data)

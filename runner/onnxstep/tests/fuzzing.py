"""Fuzz test: damaged ONNX files must give a result or a one-line error, never a crash.

    PYTHONPATH=runner/onnxstep/tests python -m fuzzing FIRST COUNT

FIRST is the number of the first mutation, COUNT the number of mutations. A file may take ten
seconds of CPU time and one gibibyte of additional memory. Only files in the model's folder may be
opened.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import faulthandler
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import defs, numpy_helper

from gradient_cases import CASES
from gradient_check import model_of
from graph_text import model_of_text, shape_of
from onnxstep import StepOptions, training_step, vjp_graph
from onnxstep.errors import Error
from onnxstep.graphs.binding import symbolic_dimensions
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import parameters
from onnxstep.graphs.tensors import FLOAT_TYPES

TESTS = Path(__file__).parent
MODELS = TESTS.parents[2] / "models"
_PROCESSOR_SECONDS_A_FILE = 10
_BYTES_A_FILE = 2**30
# Limits for files that wait without computing, or that fill the memory at once.
_SECONDS_A_FILE, _ADDRESS_BYTES = 300, 8 * 2**30
_LONGEST_MESSAGE = 2000
_NUMBERS = (0, 1, -1, 2, 7, 13, 255, 2**20, 2**28, 2**31 - 1, 2**31, 2**40, 2**62, -(2**63))
_TEXTS = ("", "x", "y", "w", "nowhere", "../../../etc/passwd", "/etc/passwd", "ai.onnx", "\0", "é")
_ATTRIBUTE_FIELDS = {
    onnx.AttributeProto.FLOAT: "f",
    onnx.AttributeProto.INT: "i",
    onnx.AttributeProto.STRING: "s",
    onnx.AttributeProto.FLOATS: "floats",
    onnx.AttributeProto.INTS: "ints",
    onnx.AttributeProto.STRINGS: "strings",
}
# Damage to a long file mostly changes names, and reading such a file takes seconds.
_SMALL_BYTES = 5_000
# Models in ONNX's text form; float inputs other than the first become weights.
_TEXT_MODELS = (
    "g (float[n,2,8,8] x, float[3,2,3,3] w, float[3] s, float[3] b, float[3] m, float[3] v) "
    "=> (float[n,m] y) <int64[2] t = {0, -1}> { c = Conv <pads = [1,1,1,1]> (x, w) "
    "d = BatchNormalization(c, s, b, m, v) e = Relu(d) f = MaxPool <kernel_shape = [2,2]> (e) "
    "y = Reshape(f, t) }",
    "g (float[5,n,3] x, float[1,16,3] w, float[1,16,4] r) => (float[5,1,n,4] y) "
    "{ y = LSTM <hidden_size = 4> (x, w, r) }",
    "g (float[n,4] x, float[4] s, float[4] b) => (float[n,4] y) <int64[1] k = {1}> "
    "{ a = LayerNormalization(x, s, b) c = Shape(a) d = Gather(c, k) e = Expand(a, c) "
    "f = Gelu(e) h = Softmax(f) i = Dropout(h) y = local.twice(i) }",
    "g (float[n,4] x, float[4] w) => (float[n,4] y) <bool c = {1}> "
    "{ a = If(c) <then_branch = t () => (float[n,4] p) { p = Mul(x, w) }, "
    "else_branch = e () => (float[n,4] q) { q = Add(x, w) }> "
    'y = Einsum <equation = "ij,j->ij"> (a, w) }',
    "g (float[n,4] x, float[4] w) => (float[n,4] y) <int64 zero = {0}, int64 many = {6}, "
    "int64[1] long = {6}, int64[2] wide = {6,4}, int64[2] ends = {0,3}, int64[2] pair = {0,1}> "
    "{ a = Mul(x, w) b = Range(zero, many, many) c = ConstantOfShape(long) d = Tile(b, long) "
    "e = OneHot(d, many, pair) f = EyeLike(e) h = Expand(f, wide) i = Pad(d, ends) "
    "j = Cast <to = 1> (i) k = Cast <to = 1> (h) l = ReduceSum <keepdims = 0> (j) "
    "m = ReduceSum <keepdims = 0> (k) o = Add(l, m) p = ReduceSum <keepdims = 0> (c) "
    "q = Add(o, p) y = Add(a, q) }",
    "g (float[1,1,n] x, float[1,1,3] w, float[1,4,3] i, float[1,4,1] r) => (float[z] y) "
    "<float[3] s = {1,1,2}, int64[1] minus = {-1}, int64[6] ends = {0,0,0,0,0,2}> "
    '{ a = Conv <strides = [2]> (x, w) b = Resize <mode = "linear"> (a, , s) '
    'c = Pad <mode = "reflect"> (b, ends) d = MaxPool <kernel_shape = [2], strides = [2]> (c) '
    "e = AveragePool <kernel_shape = [2], pads = [1,1]> (d) f = GRU <hidden_size = 1> (x, i, r) "
    "h = Reshape(f, minus) k = Reshape(e, minus) y = Concat <axis = 0> (h, k) }",
)
_FUNCTIONS = '<domain: "local", opset_import: ["" : 21]> twice (a) => (b) { b = Add(a, a) }'


def corpus() -> list[bytes]:
    """Files to damage: committed models, models of many operators, a model with external data.

    The model with external data refers to a file ``data.bin`` in its folder.
    """
    texts = [_with_weights(model_of_text(text, functions=_FUNCTIONS)) for text in _TEXT_MODELS]
    small = [path for path in sorted(MODELS.glob("*.onnx")) if _is_small(path)]
    files = [path.read_bytes() for path in small]
    files += [path.read_bytes() for path in sorted((TESTS / "faults").glob("*.onnx"))]
    return [*files, *(model.SerializeToString() for model in [*texts, _external()])]


def operators() -> dict[str, list[bytes]]:
    """Serialized models by operator; each model is one case of ``gradient_cases`` with one node."""
    models: dict[str, list[bytes]] = collections.defaultdict(list)
    for case in CASES:
        model = _with_weights(model_of(case, onnx.TensorProto.FLOAT))
        models[case.op_type].append(model.SerializeToString())
    return models


def _is_small(path: Path) -> bool:
    return path.stat().st_size <= _SMALL_BYTES


def _with_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    for value in model.graph.input[1:]:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        weights = np.full(shape_of(value), 0.5, dtype)
        model.graph.initializer.append(numpy_helper.from_array(weights, value.name))
    return model


def _external() -> onnx.ModelProto:
    model = model_of_text(
        "g (float[n,4] x) => (float[n,4] y) <float[4] w = {1,2,3,4}> { y = Mul(x, w) }"
    )
    [weight] = model.graph.initializer
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight), weight.name))
    onnx.external_data_helper.set_external_data(weight, "data.bin", 0, len(weight.raw_data))
    weight.ClearField("raw_data")
    return model


def mutated(files: list[bytes], models: Mapping[str, list[bytes]], number: int) -> bytes:
    """The damaged file of mutation ``number``; equal numbers give equal files."""
    rng = random.Random(number)
    if number % 2:
        return _with_changed_attribute(rng.choice(models[rng.choice(sorted(models))]), rng)
    data = rng.choice(files)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice((_with_changed_bytes, *[_with_changed_field] * 4))(data, files, rng)
    return data


def _with_changed_bytes(data: bytes, files: list[bytes], rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((0, 1, 1, 2, 8, 64, 10_000)))
    other_file = rng.choice(files)
    at = rng.randrange(len(other_file))
    inserted = rng.choice(
        (
            b"",
            rng.randbytes(end - start),
            rng.randbytes(2),
            other_file[at : at + 32],
            data[start:end] * 2,
        )
    )
    return data[:start] + inserted + data[end:]


def _with_changed_field(data: bytes, _files: list[bytes], rng: random.Random) -> bytes:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception:  # protobuf refuses the changed bytes
        return data
    places = list(_places(model))
    if places:
        message, descriptor = rng.choice(places)
        _change(message, descriptor, rng)
    return model.SerializeToString()


def _with_changed_attribute(data: bytes, rng: random.Random) -> bytes:
    """Change an attribute of the first node, or set an attribute that this node omits."""
    model = onnx.load_model_from_string(data)
    node, imports = model.graph.node[0], model.opset_import
    opset = next(entry.version for entry in imports if entry.domain == node.domain)
    written = {entry.name for entry in node.attribute}
    declared: Mapping[str, defs.OpSchema.Attribute] = {}
    if defs.has(node.op_type, opset, node.domain):
        declared = defs.get_schema(node.op_type, opset, node.domain).attributes
    left_out = sorted(declared.keys() - written)
    if left_out and (not written or rng.random() < 0.4):
        kind = declared[rng.choice(left_out)]
        entry = node.attribute.add(name=kind.name, type=kind.type.value)
    elif written:
        entry = rng.choice(node.attribute)
    else:
        return data
    field = entry.DESCRIPTOR.fields_by_name[_ATTRIBUTE_FIELDS.get(entry.type, "doc_string")]
    if field.is_repeated and not getattr(entry, field.name):
        getattr(entry, field.name).append(b"" if entry.type == entry.STRINGS else 0)
    _change(entry, field, rng)
    return model.SerializeToString()


def _places(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    for descriptor, value in message.ListFields():
        yield message, descriptor
        if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
            for child in value if descriptor.is_repeated else [value]:
                yield from _places(child)


def _change(message: Message, descriptor: FieldDescriptor, rng: random.Random) -> None:
    name, value = descriptor.name, getattr(message, descriptor.name)
    if rng.random() < 0.2:
        message.ClearField(name)
    elif descriptor.is_repeated:
        _change_list(value, descriptor, rng)
    elif descriptor.type != FieldDescriptor.TYPE_MESSAGE:
        _set(lambda new: setattr(message, name, new), descriptor, rng)


def _change_list(values: Any, descriptor: FieldDescriptor, rng: random.Random) -> None:
    index = rng.randrange(len(values))
    numbers = list(values)
    kind = rng.choice(("set", "remove", "repeat", "swap"))
    if kind == "set" and descriptor.type != FieldDescriptor.TYPE_MESSAGE:
        _set(lambda new: values.__setitem__(index, new), descriptor, rng)
        return
    if kind == "remove":
        del numbers[index]
    elif kind == "repeat":
        numbers.insert(index, numbers[index])
    else:
        place = rng.randrange(len(numbers))
        numbers[index], numbers[place] = numbers[place], numbers[index]
    copies = copy.deepcopy(numbers)
    del values[:]
    values.extend(copies)


def _set(assign: Callable[[Any], None], descriptor: FieldDescriptor, rng: random.Random) -> None:
    if descriptor.type == FieldDescriptor.TYPE_STRING:
        new: Any = rng.choice(_TEXTS)
    elif descriptor.type == FieldDescriptor.TYPE_BYTES:
        new = rng.randbytes(rng.randint(0, 16))
    elif descriptor.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        new = rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e30))
    else:
        new = rng.choice(_NUMBERS)
    try:
        assign(new)
    except (ValueError, TypeError):  # the number is out of the field's range
        assign(0)


def outcome(path: Path) -> str:
    """Return "a training step", or "refused at STAGE" if that stage refuses the file ``path``.

    Raises AssertionError for an error of more than one line; other exceptions pass through.
    """
    stage = "load"
    try:
        model = load_model(path)
        stage = "read"
        sizes = dict.fromkeys(symbolic_dimensions(model), 3)
        fed = [v.name for v in model.graph.input if v.type.tensor_type.elem_type in FLOAT_TYPES]
        wrt = [*fed, *(parameter.name for parameter in parameters(model))]
        stage = "gradient"
        vjp_graph(model, wrt, sizes)
        stage = "step"
        training_step(model, StepOptions(loss="mse", optimizer="adam", dimensions=sizes))
    except Error as error:
        return _refused(stage, str(error))
    return "a training step"


def _refused(stage: str, message: str) -> str:
    assert "\n" not in message, f"more than one line: {message!r}"
    assert len(message) < _LONGEST_MESSAGE, f"too long: {message!r}"
    return f"refused at {stage}"


def run(first: int, count: int) -> collections.Counter[str]:
    """Count outcomes of ``count`` mutations, numbered from ``first``; raise unexpected errors."""
    files, models = corpus(), operators()
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder)
        (inside / "data.bin").write_bytes(bytes(16))
        watch = _record_opened_paths(inside)
        for number in range(first, first + count):
            path = inside / "model.onnx"
            path.write_bytes(mutated(files, models, number))
            with _limit_time_and_memory(number):
                watch.clear()
                counts[outcome(path)] += 1
                assert not watch, f"mutation {number} opened {watch}"
    return counts


@contextlib.contextmanager
def _limit_time_and_memory(mutation_number: int) -> Iterator[None]:
    """End the process if the ``with`` block takes too long; raise if it takes too much memory."""
    # The last line names the mutation that ended the process.
    sys.stderr.write(f"mutation {mutation_number}\n")
    faulthandler.dump_traceback_later(_SECONDS_A_FILE, exit=True)
    signal.setitimer(signal.ITIMER_PROF, _PROCESSOR_SECONDS_A_FILE)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = _resident_bytes("VmRSS")
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    faulthandler.cancel_dump_traceback_later()
    grown = _resident_bytes("VmHWM") - before
    assert grown <= _BYTES_A_FILE, f"mutation {mutation_number} took {grown} bytes"


def _resident_bytes(key: str) -> int:
    status = Path("/proc/self/status").read_text("ascii")
    [line] = (line for line in status.splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1]) * 1024


def _record_opened_paths(ignored_folder: Path) -> list[str]:
    """Return a list that grows with each path that is opened.

    Paths inside ``ignored_folder`` and Python's own files are left out.
    """
    opened: list[str] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str):
            path = Path(arguments[0])
            library = path.suffix in (".py", ".pyc") or path.is_relative_to(sys.prefix)
            if not library and not path.is_relative_to(ignored_folder):
                opened.append(str(path))

    sys.addaudithook(hook)
    return opened


def main() -> None:
    """Run the mutations that the command line names, and print how often each outcome occurred."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_BYTES, _ADDRESS_BYTES))
    # Python's own handler would wait for the library that computes.
    faulthandler.register(signal.SIGPROF, chain=True)
    first, count = map(int, sys.argv[1:])
    for text, times in sorted(run(first, count).items()):
        sys.stdout.write(f"{times:7} {text}\n")


if __name__ == "__main__":
    main()

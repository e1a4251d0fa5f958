"""List the kernels of ONNX Runtime's GPU package, or where nodes would run, without a GPU.

    python benchmarks/cuda_stand_in.py kernels
    python benchmarks/cuda_stand_in.py placement GRAPH.onnx …

The package's CUDA provider loads CUDA's libraries, chooses the nodes that it takes and constructs
their kernels before it computes anything. This script compiles libraries with the functions that
the provider imports. These functions return 0 and do nothing, so that a session opens but cannot
run. ``kernels`` writes the table of ``onnxstep.graphs.cuda_kernels`` after an upgrade of
onnxruntime-gpu. ``placement`` prints the nodes of each graph that the provider leaves to the CPU.
The script needs Linux, onnxruntime-gpu, cc, nm, readelf and strings.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "runner/onnxstep/onnxstep/graphs/cuda_kernels.csv"
_STARTED = "EPOCHCOST_CUDA_STAND_IN"
_PROVIDERS = ("libonnxruntime_providers_cuda.so", "libonnxruntime_providers_tensorrt.so")
# Loaded by name when the first kernel needs it, hence not among the imports.
_CUDNN = "libcudnn.so.9"
# Functions that must return more than 0, as CUDA's headers declare them.
_C = """
#include <stdlib.h>
#include <string.h>
static char handle[4096];
int cudaMalloc(void **p, size_t n) { *p = malloc(n + 1); return 0; }
int cudaMallocHost(void **p, size_t n) { *p = malloc(n + 1); return 0; }
int cudaHostAlloc(void **p, size_t n, unsigned f) { *p = malloc(n + 1); return 0; }
int cudaMemcpy(void *to, const void *from, size_t n, int k) { memcpy(to, from, n); return 0; }
int cudaMemcpyAsync(void *to, const void *from, size_t n, int k, void *s)
{ memcpy(to, from, n); return 0; }
int cudaGetDeviceCount(int *n) { *n = 1; return 0; }
int cudaGetDeviceProperties(void *p, int device) { memset(p, 0, 512); return 0; }
int cudaMemGetInfo(size_t *available, size_t *all) { *available = *all = 80UL << 30; return 0; }
int cudaRuntimeGetVersion(int *v) { *v = 13000; return 0; }
int cudaDriverGetVersion(int *v) { *v = 13000; return 0; }
int cudnnCreate(void **h) { *h = handle; return 0; }
int cudnnDropoutGetStatesSize(void *h, size_t *n) { *n = 64; return 0; }
size_t cudnnGetVersion(void) { return 92800; }
"""
_WRITTEN = set(re.findall(r"(cud\w+)\(", _C))


def _output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _imports() -> dict[str, set[str]]:
    """Functions that the providers import, by library."""
    package = find_spec("onnxruntime")
    if package is None or not package.submodule_search_locations:
        sys.exit("expected the package onnxruntime-gpu, found none")
    folder = Path(package.submodule_search_locations[0]) / "capi"
    functions: defaultdict[str, set[str]] = defaultdict(set)
    for provider in (folder / name for name in _PROVIDERS):
        symbols = _output("nm", "-D", "--undefined-only", provider)
        for name, library in re.findall(r" U (_*cu\w+)@(lib\S+)", symbols):
            functions[library].add(name)
        for library in re.findall(r"\[(lib(?:cu|nv)\S+)\]", _output("readelf", "-d", provider)):
            functions[library] |= set(re.findall(r" U (cu\w+|create\w+|get\w+)$", symbols, re.M))
        functions[_CUDNN] |= set(re.findall(r"^cudnn[A-Z]\w+$", _output("strings", provider), re.M))
    return functions


def build_libraries(folder: Path) -> None:
    """Compile a library for each library name that the providers load."""
    for library, names in _imports().items():
        source, versions = folder / f"{library}.c", folder / f"{library}.map"
        rest = (f"void *{name}() {{ return 0; }}" for name in sorted(names - _WRITTEN))
        source.write_text("\n".join([_C, *rest]))
        versions.write_text(f"{library} {{ global: *; }};")
        options = ("-w", "-shared", "-fPIC", f"-Wl,-soname,{library}")
        script = f"-Wl,--version-script={versions}"
        _output("cc", *options, script, "-o", folder / library, source)


def write_kernels() -> None:
    """Write the table of kernels of the installed onnxruntime-gpu."""
    import onnxruntime  # reads the libraries' path when it is imported
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    forms: defaultdict[tuple[Any, ...], list[dict[str, set[str]]]] = defaultdict(list)
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == "CUDAExecutionProvider" and "nhwc" not in kernel.domain:
            types = {name: set(map(_short, of)) for name, of in kernel.type_constraints.items()}
            forms[kernel.domain, kernel.op_name, *kernel.version_range].append(types)
    schemas = {(s.domain, s.name): s for s in state.get_all_operator_schema()}
    build = re.search(r"git-commit-id=(\w+)", onnxruntime.get_build_info())
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        file.write(
            f"# Kernels of the CUDA provider, from the registry of onnxruntime-gpu "
            f"{onnxruntime.__version__} (commit {build[1] if build else 'unknown'}; MIT)\n"
        )
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["domain", "operator", "since", "until", "types", "formals"])
        for (domain, operator, since, until), alternatives in sorted(forms.items()):
            names = {name for types in alternatives for name in types}
            formals = _formals(schemas[domain, operator], names) if domain else ""
            for types in _merged(alternatives):
                text = " ".join(f"{name}={'|'.join(sorted(of))}" for name, of in types.items())
                last = "" if until >= 2**31 - 1 else until
                rows.writerow([domain, operator, since, last, text, formals])


def _short(name: str) -> str:
    return re.sub(r"tensor\((\w+)\)", r"\1", name)


def _formals(schema: Any, names: Iterable[str]) -> str:
    """The type constraints of an operator's inputs and outputs, as text.

    ONNX Runtime names a constraint by a type or by a value.
    """
    sides = (
        " ".join(f.name if f.name in names else _short(f.typeStr) for f in side)
        for side in (schema.inputs, schema.outputs)
    )
    return ":".join(sides)


def _merged(alternatives: list[dict[str, set[str]]]) -> list[dict[str, set[str]]]:
    """The alternatives, in which two that differ in one constraint become a single alternative."""
    merged: list[dict[str, set[str]]] = []
    for types in alternatives:
        for other in merged:
            differing = [name for name in types if other.get(name) != types[name]]
            if other.keys() == types.keys() and len(differing) <= 1:
                for name in differing:
                    other[name] |= types[name]
                break
        else:
            merged.append(types)
    return merged


def placements(paths: Iterable[str]) -> Iterator[str]:
    """Yield the number of nodes by provider for each graph, and the nodes on the CPU."""
    import onnxruntime  # reads the libraries' path when it is imported

    for path in paths:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        try:
            session = onnxruntime.InferenceSession(
                path, options, providers=[("CUDAExecutionProvider", {"prefer_nhwc": "0"})]
            )
        except Exception as error:  # ONNX Runtime's exceptions have no narrower base class
            yield f"{path}: refused: {' '.join(str(error).split())[-160:]}"
            continue
        if session.get_providers()[0] != "CUDAExecutionProvider":
            sys.exit("the CUDA provider did not load: see the message above")
        parts = session.get_provider_graph_assignment_info()
        nodes = [(part.ep_name, node.op_type) for part in parts for node in part.get_nodes()]
        counts = Counter(name for name, _ in nodes)
        host = Counter(operator for name, operator in nodes if name != "CUDAExecutionProvider")
        yield f"{path}: {dict(counts)} {dict(host) or ''}"


def main() -> None:
    """Restart the process with the compiled libraries loaded, then run the given command."""
    if not os.environ.get(_STARTED):
        with tempfile.TemporaryDirectory() as folder:
            build_libraries(Path(folder))
            environment = os.environ | {"LD_LIBRARY_PATH": folder, _STARTED: folder}
            command = [sys.executable, *sys.argv]
            sys.exit(subprocess.run(command, env=environment, check=False).returncode)
    if sys.argv[1:] == ["kernels"]:
        write_kernels()
    elif sys.argv[1:2] == ["placement"]:
        for line in placements(sys.argv[2:]):
            print(line, flush=True)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

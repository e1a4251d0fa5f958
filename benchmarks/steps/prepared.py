"""Prepared cases on disk, written again if one of their sources changed."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from line_process import with_benchmarks

import epochcost
import onnxstep
from epochcost.specs.loader import load_catalogue
from steps.cases import Case, subjects
from steps.prepare import prepare, prepare_inference

_PACKAGES = ("execute", "graphs", "measure", "plan", "specs", "train")
_STAMP = "made-of.txt"


def prepared(root: Path, cache: Path, case: Case, *, dropout: bool = True) -> Path:
    """The folder of a case, for any number of threads; written if it is missing or outdated."""
    kind = case.mode if case.mode == "inference" else "case" if dropout else "plain"
    name = f"{case.subject.model}-{case.batch_size}-{case.device}-{case.precision}"
    folder = cache / kind / name
    stamp, current = folder / _STAMP, _stamp(root, case.subject.model)
    if stamp.is_file() and stamp.read_text("ascii") == current:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    # In another process, so that its memory is free when contenders start.
    sizes = [case.subject.model, str(case.batch_size), str(folder)]
    arguments = [*sizes, case.device, case.precision, case.mode]
    subprocess.run(
        [sys.executable, "-m", "steps.prepared", *arguments, *([] if dropout else ["--plain"])],
        cwd=root,
        env=with_benchmarks(),
        check=True,
    )
    stamp.write_text(current, "ascii")
    return folder


def _stamp(root: Path, model: str) -> str:
    """Digest of the code of all contenders' steps, the model's spec and the graph."""
    package, library = Path(epochcost.__path__[0]), Path(onnxstep.__path__[0])
    folders = [library, *(package / name for name in _PACKAGES), Path(__file__).parent]
    # PyTorch's steps run the modules of the exporters.
    folders.append(root / "models")
    sources = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    named = load_catalogue(root).model(model)
    files = [*sources, root / "models" / named.graph, root / "specs" / "models" / f"{model}.toml"]
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def main() -> None:
    """Prepare one case in the given folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("model")
    parser.add_argument("batch_size", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("device")
    parser.add_argument("precision")
    parser.add_argument("mode", choices=("training", "inference"))
    parser.add_argument("--plain", action="store_true", help="without dropout")
    options = parser.parse_args()
    compared = subjects(options.mode)
    subject = next(subject for subject in compared if subject.model == options.model)
    case = Case(subject, options.batch_size, 0, options.device, options.precision, options.mode)
    if case.mode == "inference":
        prepare_inference(load_catalogue(Path.cwd()), case, options.folder)
    else:
        prepare(load_catalogue(Path.cwd()), case, options.folder, dropout=not options.plain)


if __name__ == "__main__":
    main()

"""The JSON form of a result: its version, the history of versions, and how old files are read.

History of FORMAT_VERSION:
1  first form: trial, measurement with raw samples in seconds, environment.
2  Added to the environment: the cloud's `instance`, instead of `instance_type`, which was always
   null; parts of the processor, GPU settings, container, limits, revision. `virtualisation` names
   the hypervisor alone, which a container hid before. Added to the measurement: conditions and
   energy of the sampling phase, runs of LoadGen, rounds, and whole epochs. Added otherwise: the
   trial's load and the CPUs that it was pinned to, contradictions to the declared machine, and
   hashes of spec files.
3  Added: the machine's pace, read between the samples.
4  Removed: whole epochs, and the machine's pace; from the environment the container, an instance's
   place, the load, and clocks, sockets and memory checks of CPU and GPUs. These parts of earlier
   files are ignored. Removed: other runtimes, and settings of graph optimisation, spinning,
   denormals and input copies; a trial with such a setting differs from today's trials. Files of
   int8 are no longer read.

Whoever changes a record raises the version and adds a line above. New fields are optional and
removed fields have the type ``Former``, so that one parser reads the files of all versions; stored
files are never edited.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from epochcost.errors import Fault, ResultError
from epochcost.results.fields import first_error, read_record
from epochcost.results.records import Result

FORMAT_VERSION = 4
_NUMBERS_ON_LINES = re.compile(r"\[\n\s*([-+.\deE]+(?:,\n\s*[-+.\deE]+)*)\n\s*\]")


class DamagedResultError(ResultError):
    """A file is not a valid result; ``fault`` says where and why."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(str(fault))


class NewerResultError(DamagedResultError):
    """A newer version of epochcost wrote the file, which is intact and must not be replaced."""


def serialise_result(result: Result) -> bytes:
    """The bytes of a result's file: a line for each key, so that changes can be reviewed.

    All samples are on one line.
    """
    text = json.dumps(result.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
    return (_NUMBERS_ON_LINES.sub(_on_one_line, text) + "\n").encode()


def _on_one_line(numbers: re.Match[str]) -> str:
    return "[" + ", ".join(number.strip() for number in numbers[1].split(",")) + "]"


def parse_result(data: bytes, path: Path) -> Result:
    """Parse the bytes of a result file of any version; ``path`` is for messages only.

    Raises DamagedResultError if the bytes are not a complete and consistent result.
    """
    try:
        result = read_record(Result, data)
    except ValidationError as error:
        _require_version(_decoded(data, path).get("format_version"), path)
        raise _damaged(path, first_error(error)) from None
    _require_version(result.format_version, path)
    if result.trial_id != result.trial.id:
        expected = f"expected trial_id {result.trial.id} for this trial, got {result.trial_id}"
        raise _damaged(path, f"{expected}: the file was edited; measure again")
    return result.model_copy(update={"format_version": FORMAT_VERSION})


def _decoded(data: bytes, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise _damaged(path, f"expected UTF-8 text, got another byte at {error.start}") from None
    except json.JSONDecodeError as error:
        message = f"expected a complete JSON document, got an error here: {error.msg}"
        raise DamagedResultError(Fault(path, error.lineno, error.colno, message)) from None
    except (RecursionError, ValueError) as error:
        raise _damaged(path, f"expected a JSON document of a result, got {error}") from None
    if not isinstance(document, dict):
        raise _damaged(path, f"expected a JSON object, got {type(document).__name__}")
    return document


def _require_version(version: Any, path: Path) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _damaged(
            path, f"expected format_version from 1 to {FORMAT_VERSION}, got {version!r:.80}"
        )
    if version > FORMAT_VERSION:
        message = (
            f"expected format_version up to {FORMAT_VERSION}, got {version}: "
            "a newer epochcost wrote this file; update epochcost to read it"
        )
        raise NewerResultError(Fault(path, 1, 1, message))


def _damaged(path: Path, message: str) -> DamagedResultError:
    return DamagedResultError(Fault(path, 1, 1, message))

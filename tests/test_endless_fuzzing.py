"""Fuzzing goes on where it was, past what it finds, which it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

import endless_fuzzing

# Refuses to do 4 and 7.
_FAKE = """
import sys
first, count = map(int, sys.argv[1:])
for number in range(first, first + count):
    if number in (4, 7):
        sys.exit(f"mutation {number}\\nit bites")
print(count, "harmless")
"""


def test_it_goes_on_past_what_it_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each number is done once, in batches; a second call has nothing left to do."""
    (tmp_path / "fake_kind.py").write_text(_FAKE, "utf-8")
    folder = tmp_path / "fuzz"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(endless_fuzzing, "KINDS", {"fakes": ("fake_kind", 3)})
    monkeypatch.setattr("sys.argv", ["x", "--folder", str(folder), "--count", "10"])
    with pytest.raises(SystemExit) as ended:
        endless_fuzzing.main()
    assert ended.value.code == 1
    lines = [line.partition(" found")[0] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["fakes 3, 0", "fakes 5, 1", "fakes 8, 2", "fakes 10, 2"]
    assert (folder / "fakes-4.txt").read_text("utf-8") == "mutation 4\nit bites\n"
    with pytest.raises(SystemExit):
        endless_fuzzing.main()
    assert capsys.readouterr().out == ""

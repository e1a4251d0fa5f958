"""The code accepts the specs on the page about adding a model."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from epochcost.cli.app import app
from tiny_project import linear_model

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/add-a-model.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """The page's code blocks in a language."""
    return [
        str(text)
        for text in re.findall(rf"```{language}(?: title=[^\n]*)?\n(.*?)```", PAGE, flags=re.DOTALL)
    ]


def block(language: str) -> str:
    """The page's only code block in a language."""
    (text,) = blocks(language)
    return text


def test_every_spec_on_the_page_passes_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's files, in their folders, are a project without a fault."""
    study, tagger, decoder, recurrent, dataset = blocks("toml")
    files = {
        "studies/tagger": study,
        "models/tagger": tagger,
        "models/my-decoder": decoder,
        "models/recurrent-example": recurrent,
        "datasets/example-text": dataset,
        "hardware/local": (ROOT / "specs/hardware/local.toml").read_text("utf-8"),
    }
    for name, text in files.items():
        path = tmp_path / "specs" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (tmp_path / "models").mkdir()
    for graph, tokens in (("tagger", "tokens"), ("recurrent", "words")):
        model = linear_model()
        model.graph.input[0].name = model.graph.node[0].input[0] = tokens
        # More classes than the page's examples have.
        model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 10_000
        model.graph.output.add().CopyFrom(model.graph.output[0])
        model.graph.output[1].name = "length"
        if graph == "recurrent":
            model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "sequence"
        onnx.save(model, tmp_path / "models" / f"{graph}.onnx")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["check"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "6 files checked, 0 faults" in result.output

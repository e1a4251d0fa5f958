"""`epochcost finetune`."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epochcost.cli.app import app
from epochcost.errors import UsageError

ROOT = Path(__file__).parents[2]
LORA = "finetune --model llama-3.1-8b --method lora --examples 10000 --tokens 512 --epochs 3"


@pytest.fixture(autouse=True)
def _project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def run(line: str) -> str:
    """The output of a successful command."""
    result = CliRunner().invoke(app, line.split(), env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_answer_in_words() -> None:
    """The answer has the training, the cheapest machine, memory by part, and published rows."""
    out = run(LORA)
    assert out.startswith("LoRA fine-tuning of llama-3.1-8b on 15,360,000 tokens in sequences of")
    assert ", with PyTorch in bf16 (fp16 on older GPUs), cheapest first\n" in out
    assert "\nCheapest: " in out
    assert re.search(r"  weights: 15\.0 GiB: 2 bytes a weight\n", out)
    assert re.search(r"Published: 4,079 tokens a second on 1 A100 SXM4 \(80 GB\), VectorLM", out)
    assert re.search(
        r"\nLeft out, too little memory \(8-bit .*\): .*needs 18\.0 GiB on its device", out
    )


def test_json_has_every_figure() -> None:
    """JSON has the choice, the parts of its memory, and the sources of published rows."""
    answer = json.loads(run(f"{LORA} --format json"))
    way = answer["choice"]["key"]["way"]
    parts = sum(part["bytes"] for part in answer["memory"])
    assert parts == pytest.approx(way["needed_bytes"])
    assert answer["demand"]["total"] == "15360000"
    line = answer["published"][0]["line"]
    assert line["cells"]["source"]
    assert line["path"] == "specs/observations/training-llm.csv"


def test_pretraining_takes_all_tokens() -> None:
    """A pre-training is planned for a number of tokens, and has no adapters."""
    out = run("finetune --model gpt2-decoder --method pretraining --tokens-total 10B --tokens 1024")
    assert out.startswith("Pre-training of gpt2-decoder on 10,000,000,000 tokens")
    assert "adapters" not in out


def test_a_budget_lists_the_fastest_first() -> None:
    """With a budget, the choice is the fastest machine within it, in the first row."""
    out = run("finetune --model llama-3.1-8b --method qlora --examples 10000 --budget 2USD")
    assert out.startswith("QLoRA fine-tuning of llama-3.1-8b on 5,120,000 tokens")
    assert "fastest first" in out.splitlines()[0]
    chosen = re.search(r"\nFastest: (.*?), on-demand: \$([0-9.]+) in", out)
    assert chosen
    assert float(chosen[2]) <= 2
    assert f"> {chosen[1]}" in out.splitlines()[3]


def test_plans_that_are_listed_last_have_a_reason() -> None:
    """Commitments, assumed prices and spot plans follow the others, each with the reason."""
    out = run(f"{LORA} --all --wide")
    rows = [row for row in out.split("\n\n")[1].splitlines() if "  predicted" in row]
    reasons = [re.search(r"  predicted(?:[,;] )?(.*?)(?:  |$)", row) for row in rows]
    texts = [reason[1] for reason in reasons if reason]
    counts = re.search(r"\nNot compared: ([0-9]+) \((.*)\); --all lists them last\n", out)
    assert counts
    assert set(texts[: -int(counts[1])]) == {""}
    assert Counter(texts[-int(counts[1]) :]) == {
        reason.replace("its price is assumed", "price assumed"): int(number)
        for number, reason in re.findall(r"([0-9]+): ([^;]+)", counts[2])
    }


@pytest.mark.parametrize("tokens", ["", " --examples 10 --tokens-total 1M"])
def test_tokens_are_given_once(tokens: str) -> None:
    """Examples and a total of tokens are refused together, and so are neither."""
    with pytest.raises(UsageError, match="expected either --examples or --tokens-total"):
        run(f"finetune --model llama-3.1-8b{tokens}")


@pytest.mark.parametrize("method", ["full", "pretraining"])
def test_a_rank_needs_adapters(method: str) -> None:
    """A rank is refused if the method trains no adapters."""
    with pytest.raises(UsageError, match=f"--rank: cannot be combined with --method {method}"):
        run(f"finetune --model llama-3.1-8b --examples 10 --method {method} --rank 8")


def test_all_machines_are_in_the_order_of_the_heading() -> None:
    """With `--all`, too, a faster machine is above a slower one if no price is doubted."""
    line = "finetune --model llama-3.1-8b --examples 10000 --budget 2USD --all"
    rows = re.findall(r"  on-demand +([0-9.]+) (s|min|h) ", run(line))
    times = [float(number) * {"s": 1, "min": 60, "h": 3600}[unit] for number, unit in rows]
    assert times[:20] == sorted(times[:20])


def test_machines_beyond_the_deadline_are_a_table_of_their_own() -> None:
    """With `--all`, every machine above the heading meets the deadline, and none below it."""
    within, _, beyond = run(f"{LORA} --deadline 20m --all").partition("\nBeyond the limits:\n")
    times = [re.findall(r"  on-demand +([0-9.]+) (s|min|h) ", part) for part in (within, beyond)]
    minutes = {"s": 1 / 60, "min": 1, "h": 60}
    met, late = ([float(number) * minutes[unit] for number, unit in part] for part in times)
    assert max(met) <= 20 < min(late)

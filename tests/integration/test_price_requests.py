"""New prices, from others' tables to a pull request, with a local `gh`."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fake_github import write_program
from revisions import commit, git

ROOT = Path(__file__).parents[2]
_GH = """#!{python}
import json, pathlib, sys, tarfile
state = pathlib.Path({state!r})
words = sys.argv[1:]
if words[:1] == (state / "refused.txt").read_text().split():
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
if words[0] != "api":
    body = words[words.index("--body-file") + 1] if "--body-file" in words else None
    text = pathlib.Path(body).read_text() if body else ""
    with (state / "calls.txt").open("a") as calls:
        calls.write(json.dumps([*words, text]) + "\\n")
elif words[1].endswith("/license"):
    print("MIT" if "models.dev" in words[1] else (state / "licence.txt").read_text())
elif "/tarball/" in words[1]:
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|gz") as tar:
        tar.add(state / "models.dev", "models.dev-c0ffee")
elif "models.dev/commits?" in words[1]:
    print("c0ffee 2026-11-22")
elif "/commits?" in words[1]:
    print("c0ffee")
elif "pricing.yml" in words[1]:
    print((state / "gcp.yml").read_text())
else:
    print((state / ("aws.go" if "aws" in words[1] else "azure.go")).read_text())
"""
_AWS = """// generated at 2026-11-20T01:02:03Z for us-east-1
var InitialOnDemandPricesAWS = map[string]map[ec2types.InstanceType]float64{
	"us-east-1": {
		// g6 family
		"g6.12xlarge": 4.601600, "g6.xlarge": 0.512000,
	},
}
"""
_AZURE = """// generated at 2026-11-21T01:02:03Z
	initialOnDemandPrices["australiaeast"] = map[string]float64{
		"Standard_NC16as_T4_v3":  9.000000,
	}
	initialOnDemandPrices["eastus"] = map[string]float64{
		"Standard_NC16as_T4_v3":  1.100000,
	}
"""

_GCP = """---
about:
  timestamp: 1795062165
compute:
  instance:
    g2-standard-4:
      cost:
        us-central1:
          hour: 0.706832255
          hour_spot: 0.45
          month: 515.98754615
          month_1y: 515.98754615
          month_3y: 232.19438719
        us-east4:
          hour: 9.9
          month: 7227
      cpu: 4
      l4: 1
  license:
    g2-standard-4:
      cost:
        us-central1:
          hour: 7.7
          month: 5621
"""


@pytest.fixture(name="state")
def state_fixture(tmp_path: Path) -> Path:
    """GitHub's state, and the program that simulates it."""
    (tmp_path / "licence.txt").write_text("Apache-2.0", "utf-8")
    (tmp_path / "refused.txt").write_text("", "utf-8")
    model = tmp_path / "models.dev/providers/groq/models/openai/gpt-oss-20b.toml"
    model.parent.mkdir(parents=True)
    model.write_text("[cost]\ninput = 0.075\ncache_read = 0.0375\noutput = 0.3\n", "utf-8")
    (tmp_path / "aws.go").write_text(_AWS, "utf-8")
    (tmp_path / "azure.go").write_text(_AZURE, "utf-8")
    (tmp_path / "gcp.yml").write_text(_GCP, "utf-8")
    gh = tmp_path / "bin/gh"
    gh.parent.mkdir()
    gh.write_text(_GH.format(python=sys.executable, state=str(tmp_path)), "utf-8")
    gh.chmod(0o755)
    return tmp_path


@pytest.fixture(name="clone")
def clone_fixture(tmp_path: Path) -> Path:
    """Our machines and prices in a clone of a bare remote."""
    clone = tmp_path / "clone"
    for kind in ("hardware", "prices", "api-tables", "models", "datasets"):
        shutil.copytree(ROOT / "specs" / kind, clone / "specs" / kind)
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(clone, "init", "--quiet", "--initial-branch", "main")
    git(clone, "remote", "add", "origin", str(tmp_path / "remote.git"))
    commit(clone)
    return clone


def _propose(clone: Path, state: Path) -> str:
    result = _run(clone, state)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def _run(clone: Path, state: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{state / 'bin'}:{os.environ['PATH']}",
        "EPOCHCOST": write_program(state / "epochcost"),
        "REPOSITORY": "us/costs",
        "RUN_ID": "12",
    }
    return subprocess.run(
        [sys.executable, ROOT / ".github/scripts/prices.py"],
        cwd=clone, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_new_prices_become_a_request(clone: Path, state: Path) -> None:
    """Each has a date and a source, and rows without a file do not change; costs are listed."""
    model = state / "models.dev/providers/groq/models/openai/gpt-oss-20b.toml"
    model.write_text("[cost]\ninput = 0.08\ncache_read = 0.04\noutput = 0.3\n", "utf-8")
    _propose(clone, state)
    shown = ("show", "--name-only", "--format=", "prices-12", "--", "specs/prices")
    names = git(clone, *shown).split()
    dated = {name for name in names if not name.endswith("-2026-11.toml")}
    assert len(names) > len(dated)
    assert {Path(name).stem for name in dated} == {
        "g6.12xlarge-on-demand-2026-07",
        "g2-standard-4-committed-use-3y-2024-06",
        "g2-standard-4-on-demand-2024-06",
    }
    texts = [(clone / name).read_text("utf-8") for name in sorted({*names} - dated)]
    assert "amount = 0.45\n" in texts[0]
    assert "as_of = 2026-11-19" in texts[0]
    assert "amount = 0.512\n" in texts[1]
    assert "as_of = 2026-11-20" in texts[1]
    assert "aws/karpenter-provider-aws@c0ffee" in texts[1]
    assert "amount = 1.10\n" in texts[2]
    assert "prices-12" in git(state / "remote.git", "branch", "--list")
    calls = [json.loads(line) for line in (state / "calls.txt").read_text("utf-8").splitlines()]
    (request,) = [call for call in calls if call[:2] == ["pr", "create"]]
    assert "g6.xlarge" in request[-1]
    change = git(clone, "show", "--format=", "-U0", "prices-12", "--", "specs/api-tables")
    (row,) = [line for line in change.splitlines() if line.startswith("+Groq")]
    assert row.startswith("+Groq,openai/gpt-oss-20b,gpt-oss-20b,0.08,0.04,,0.3,")
    assert row.endswith(
        ',2026-11-22,,"anomalyco/models.dev@c0ffee, providers/groq/models/openai/gpt-oss-20b.toml",'
    )


def test_a_source_under_another_licence_is_left_out(clone: Path, state: Path) -> None:
    """Nothing of it is read or proposed."""
    (state / "licence.txt").write_text("NOASSERTION", "utf-8")
    (state / "aws.go").unlink()
    output = _propose(clone, state)
    assert "aws/karpenter-provider-aws: left out: its licence is NOASSERTION" in output
    assert "nothing to propose" in output
    assert git(clone, "status", "--porcelain") == ""


@pytest.mark.parametrize("call", ["api", pytest.param("pr", marks=pytest.mark.slow)])
def test_a_token_that_may_not_is_told_without_a_traceback(
    clone: Path, state: Path, call: str
) -> None:
    """GitHub's message, then the refused call."""
    (state / "refused.txt").write_text(call, "utf-8")
    result = _run(clone, state)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    message, ended = result.stderr.splitlines()[-2:]
    assert message.endswith("(HTTP 403)")
    assert ended.startswith(f"gh {call} ")
    assert ended.endswith(": ended with 1, as said above")


def test_a_whole_price_keeps_its_zeros() -> None:
    """A price of 60 dollars does not become 6, however many digits the table has."""
    spec = importlib.util.spec_from_file_location("prices", ROOT / ".github/scripts/prices.py")
    assert spec is not None
    assert spec.loader is not None
    prices = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prices)
    text = '"us-east-1": {"a": 60, "b": 60.000000, "c": 0.512000}'
    assert [row[1] for row in prices.rows(text)] == ["60", "60", "0.512"]

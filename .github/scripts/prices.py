"""Proposes prices that others list anew: fetches their tables, imports them, opens a request.

REPOSITORY and RUN_ID say where; GitHub's `gh` does the talking with GH_TOKEN. Only sources whose
licence allows it are taken, and each is asked for its licence again. What `epochcost diff` says of
the new prices is the request's text; a person reviews both. EPOCHCOST names the program.
"""

import csv
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple


class Source(NamedTuple):
    """A file of a repository that lists prices of one provider by region and machine.

    In Go; with the ending ``.yml`` in YAML.
    """

    repository: str
    path: str
    licence: str
    provider: str
    region: str


SOURCES = (
    Source(
        "aws/karpenter-provider-aws",
        "pkg/providers/pricing/zz_generated.pricing_aws.go",
        *("Apache-2.0", "aws", "us-east-1"),
    ),
    Source(
        "Azure/karpenter-provider-azure",
        "pkg/providers/pricing/zz_generated.pricing.go",
        *("Apache-2.0", "azure", "eastus"),
    ),
    Source(
        "Cyclenerd/google-cloud-pricing-cost-calculator",
        "pricing.yml",
        *("Apache-2.0", "gcp", "us-central1"),
    ),
)
# Prices of tokens: a folder of TOML files, which `epochcost prices renew-apis` reads.
APIS, APIS_LICENCE = "anomalyco/models.dev", "MIT"
WRITTEN = ("specs/prices", "specs/api-tables")
REGION = r'"(?P<region>[a-z0-9-]+)"(?:\] = map\[string\]float64|:\s*)\{'
PRICE = r'"(?P<machine>[^"]+)":\s*(?P<price>[0-9.]+)'
LISTED = re.compile(f"{REGION}|{PRICE}")
DAY = re.compile(r"generated at (\d{4}-\d\d-\d\d)T|^  timestamp: (\d+)$", re.MULTILINE)
# Machines, regions and prices of the YAML file by their indentation; its months have 730 hours, and
# a commitment that is not offered has the price of a month on demand.
INDENTED = re.compile(r"^(?P<indent> *)(?P<key>[\w-]+):(?: (?P<value>[0-9.]+))?$", re.MULTILINE)
MACHINE, PLACE, AMOUNT, HOURS = 4, 8, 10, 730
COLUMNS = ("InstanceType", "Price", "Region", "SpotPrice", "CommittedPrice1y", "CommittedPrice3y")


def main() -> None:
    """Import every source, and propose what is new."""
    for source in SOURCES:
        take_over(source)
    renew_apis()
    if not output("git", "status", "--porcelain", "--", *WRITTEN):
        print("no price is new: nothing to propose")
        return
    propose()


def take_over(source: Source) -> None:
    """Write specs of the source's new prices; one under another licence is left out and named."""
    about = f"repos/{source.repository}"
    licence = gh(f"{about}/license", "--jq", ".license.spdx_id")
    if licence != source.licence:
        print(f"{source.repository}: left out: its licence is {licence}, not {source.licence}")
        return
    commit = gh(f"{about}/commits?path={source.path}&per_page=1", "--jq", ".[0].sha")
    raw = ("--header", "Accept: application/vnd.github.raw")
    text = gh(f"{about}/contents/{source.path}?ref={commit}", *raw)
    day = DAY.search(text)
    if day is None:
        sys.exit(f"{source.repository}@{commit}: expected a day of generation, found none")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "list.csv"
        with table.open("w", encoding="utf-8", newline="") as file:
            listed = yaml_rows(text) if source.path.endswith(".yml") else rows(text)
            csv.writer(file).writerows([COLUMNS, *listed])
        place = f"{source.repository}@{commit}, {source.path}"
        dated = day[1] or str(datetime.fromtimestamp(int(day[2]), UTC).date())
        options = ("--provider", source.provider, "--region", source.region, "--as-of", dated)
        told = (*options, "--source", place, "--skip-faulty")
        print(output(epochcost(), "prices", "import", *told, str(table)))


def renew_apis() -> None:
    """Renew the table of prices of tokens from the newest commit of models.dev."""
    about = f"repos/{APIS}"
    licence = gh(f"{about}/license", "--jq", ".license.spdx_id")
    if licence != APIS_LICENCE:
        print(f"{APIS}: left out: its licence is {licence}, not {APIS_LICENCE}")
        return
    query = f"{about}/commits?path=providers&per_page=1"
    commit, day = gh(query, "--jq", '.[0] | "\\(.sha) \\(.commit.committer.date[:10])"').split()
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "models.tar.gz"
        with archive.open("wb") as file:
            subprocess.run(("gh", "api", f"{about}/tarball/{commit}"), check=True, stdout=file)
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        (checkout,) = (path for path in Path(folder).iterdir() if path.is_dir())
        stated = ("--commit", commit, "--as-of", day)
        print(output(epochcost(), "prices", "renew-apis", *stated, str(checkout)))


def yaml_rows(text: str) -> list[tuple[str, ...]]:
    """Machine, region and prices of an hour, as the YAML file has them."""
    listed: dict[tuple[str, str], dict[str, Decimal]] = {}
    machine = region = ""
    section = re.split(r"\n  (?=[a-z])", text.partition("\n  instance:\n")[2])[0]
    for line in INDENTED.finditer(section):
        indent, key, value = len(line["indent"]), line["key"], line["value"]
        if indent == MACHINE:
            machine = key
        elif indent == PLACE:
            region = key
        elif indent == AMOUNT and value:
            listed.setdefault((machine, region), {})[key] = Decimal(value)
    return [
        (machine, str(prices["hour"]), region, str(prices.get("hour_spot", "")), *committed(prices))
        for (machine, region), prices in listed.items()
        if "hour" in prices
    ]


def committed(prices: dict[str, Decimal]) -> list[str]:
    """The prices of an hour under commitments of one and three years; empty where not offered."""
    months = [prices.get(key) for key in ("month_1y", "month_3y")]
    return [
        f"{month / HOURS:.9f}".rstrip("0") if month and month < prices["month"] else ""
        for month in months
    ]


def rows(text: str) -> list[tuple[str, ...]]:
    """Machine, price of an hour and region, as the Go file has them."""
    found, region = [], ""
    for one in LISTED.finditer(text):
        if one["region"]:
            region = one["region"]
        else:
            # Go prints six digits, of which the last say nothing.
            price = Decimal(one["price"]).normalize()
            found.append((one["machine"], f"{price:f}", region, "", "", ""))
    return found


def propose() -> None:
    """Open a request of the new specs, with what they change in cost."""
    repository, run = os.environ["REPOSITORY"], os.environ["RUN_ID"]
    branch, title = f"prices-{run}", "Add prices that are listed anew"
    output(epochcost(), "check")
    output("git", "switch", "--quiet", "--create", branch)
    output("git", "add", "--", *WRITTEN)
    person = ("-c", "user.name=epochcost", "-c", "user.email=epochcost@users.noreply.github.com")
    output("git", *person, "commit", "--quiet", "-m", title)
    changes = output(epochcost(), "diff", "HEAD^", "--format", "markdown")
    with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
        file.write(changes or "No cost changes.")
        file.flush()
        output("gh", "auth", "setup-git")
        output("git", "push", "--quiet", os.environ.get("REMOTE", "origin"), branch)
        said = ("--title", title, "--body-file", file.name)
        output("gh", "pr", "create", "--repo", repository, "--head", branch, *said)


def epochcost() -> str:
    """The program."""
    return os.environ.get("EPOCHCOST", ".venv/bin/epochcost")


def gh(path: str, *options: str) -> str:
    """What GitHub answers to a question."""
    return output("gh", "api", path, *options)


def output(*command: str) -> str:
    """What a command prints; one that fails has said why and ends this."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{' '.join(command[:3])}: ended with {done.returncode}, as said above")
    return done.stdout.decode("utf-8").strip()


if __name__ == "__main__":
    main()

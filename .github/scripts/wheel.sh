#!/usr/bin/env bash
# Builds the wheel into the folder dist/ and uses it as somebody does who has nothing else: installed
# with what it needs, in an empty folder.
set -euo pipefail

python3 -m pip wheel --quiet --no-deps --wheel-dir dist .
wheel=("$PWD"/dist/*.whl)
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT
python3 -m venv "$away/venv"
"$away/venv/bin/pip" install --quiet "${wheel[0]}[site]"
epochcost=$away/venv/bin/epochcost

mkdir "$away/empty"
cd "$away/empty"
"$epochcost" cheapest --model resnet50
"$epochcost" quote --price g6.xlarge-on-demand-2026-07 --duration 428s
"$epochcost" build --strict
"$epochcost" init costs
cd costs
"$epochcost" check
"$epochcost" build --strict

#!/usr/bin/env bash
# Builds the site for publication into the folder FOLDER: no fault in specs or results, no warning.
#
#   publish.sh FOLDER
set -euo pipefail

folder=$1
epochcost=${EPOCHCOST:-.venv/bin/epochcost}
"$epochcost" check
"$epochcost" check --results
"$epochcost" build --strict --site-dir "$folder"

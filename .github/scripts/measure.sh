#!/usr/bin/env bash
# Measures a study on this machine and leaves the results in the folder FOLDER, finished or not.
#
#   HARDWARE=ID [STUDY=ID] [PROVIDER=cuda|cpu] measure.sh FOLDER
set -euo pipefail

case $HARDWARE in
'' | .* | *[!A-Za-z0-9._-]*)
    echo "expected a machine's id of specs/hardware, got '$HARDWARE'" >&2
    exit 2
    ;;
esac

folder=$1
provider=${PROVIDER:-cuda}
lock=requirements/run.txt
if [ "$provider" = cuda ]; then lock=requirements/gpu.txt; fi
if [ -z "${EPOCHCOST:-}" ]; then requirements/bootstrap.sh .venv "$lock"; fi
mkdir -p "$folder"
exec "${EPOCHCOST:-.venv/bin/epochcost}" run ${STUDY:+--study "$STUDY"} \
    --provider "$provider" --hardware "$HARDWARE" --resume --results "$folder"

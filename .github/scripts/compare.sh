#!/usr/bin/env bash
# Checks a pull request's specs and results and says what it changes in cost.
#
#   compare.sh BASE FOLDER
#
# Leaves FOLDER/comment.md: the faults, or the changes since the commit BASE, or nothing at all.
# Exits 1 where something is at fault. EPOCHCOST names another program than .venv's.
set -euo pipefail

base=$1
folder=$2
epochcost=${EPOCHCOST:-.venv/bin/epochcost}
marker='<!-- epochcost diff -->' # what comment.py finds its own comment by
faults=0
mkdir -p "$folder"
: >"$folder/comment.md"

# What a command says goes to the log, and where it fails into the comment too, between two fences
# that are longer than any in it. The files that a command is about are named in what it says.
demand() {
    local said fence='```'
    if said=$("$epochcost" "$@" 2>&1); then
        printf '%s\n' "$said"
        return
    fi
    printf '%s\n' "$said"
    if [ "$faults" -eq 0 ]; then printf '%s\n' "$marker" >"$folder/comment.md"; fi
    faults=1
    while [[ $said == *"$fence"* ]]; do fence+='`'; done
    printf '**epochcost %s found faults:**\n\n%s\n%s\n%s\n\n' \
        "${*:1:2}" "$fence" "${said:0:20000}" "$fence" >>"$folder/comment.md"
}

# Each check after those that it relies on, so that one fault is told once.
demand check
# A result that the request brings has to be of today's models; those that stand here may be older.
mapfile -d '' -t brought < <(
    git diff --name-only -z --diff-filter=AMR "$base" -- ':(glob)docs/data/results/*/*.json'
)
if [ "$faults" -eq 0 ] && [ "${#brought[@]}" -gt 0 ]; then
    demand check --results "${brought[@]}"
fi
if [ "$faults" -eq 0 ]; then demand check --results; fi
if [ "$faults" -eq 0 ]; then
    "$epochcost" diff "$base" --format markdown >"$folder/comment.md"
    cat "$folder/comment.md"
    cp "$folder/comment.md" "$folder/changes.md"
    demand check --budgets
    if [ "$faults" -ne 0 ]; then sed 1d "$folder/changes.md" >>"$folder/comment.md"; fi
    rm "$folder/changes.md"
fi
exit "$faults"

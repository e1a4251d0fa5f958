#!/usr/bin/env bash
# Proposes a run's results as a pull request of their own.
#
# GH_TOKEN, REPOSITORY, RUN_ID and HARDWARE say which. Only what a run keeps of that machine is taken:
# results, and beside them its ceilings and the limits of sweeps.
set -euo pipefail

case $HARDWARE in
'' | .* | *[!A-Za-z0-9._-]*)
    echo "expected a machine's id of specs/hardware, got '$HARDWARE'" >&2
    exit 2
    ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
gh run download "$RUN_ID" --repo "$REPOSITORY" --name results --dir "$folder/results"
target="docs/data/results/$HARDWARE"
mkdir -p "$target"
for kind in . ceilings limits; do
    brought="$folder/results/$HARDWARE/$kind"
    if [ -d "$brought" ]; then
        mkdir -p "$target/$kind"
        find "$brought" -maxdepth 1 -type f -name '*.json' -exec cp {} "$target/$kind/" \;
    fi
done
if [ -z "$(git status --porcelain -- "$target")" ]; then
    echo "the run brought no new result: nothing to propose"
    exit 0
fi

branch="results-$HARDWARE-$RUN_ID"
git switch --quiet --create "$branch"
git add -- "$target"
git -c user.name="epochcost" -c user.email="epochcost@users.noreply.github.com" \
    commit --quiet -m "Add results of $HARDWARE"
gh auth setup-git
git push --quiet "${REMOTE:-origin}" "$branch"
gh pr create --repo "$REPOSITORY" --head "$branch" --title "Add results of $HARDWARE" \
    --body "Measured by run $RUN_ID. Close and reopen this request to have it checked: a request that a workflow opens starts none."

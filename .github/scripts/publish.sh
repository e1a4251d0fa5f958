#!/usr/bin/env bash
# Builds the site for publication into the folder FOLDER: no fault in specs or results, no warning.
#
#   publish.sh FOLDER
#
# The page of changes counts from the commit that was published last. The published site says which
# that was, where EPOCHCOST_SITE_URL names it; else EPOCHCOST_PUBLISHED does. Where neither is a commit
# of this clone, the build takes the last tag or the parent commit.
set -euo pipefail

folder=$1
epochcost=${EPOCHCOST:-.venv/bin/epochcost}

published=${EPOCHCOST_PUBLISHED:-}
if [ -n "${EPOCHCOST_SITE_URL:-}" ]; then
    said=$(curl --fail --silent --location --max-time 20 \
        "${EPOCHCOST_SITE_URL%/}/data/publication.json" | grep -o -m1 '[0-9a-f]\{40\}' || true)
    published=${said:-$published}
fi
git cat-file -e "$published^{commit}" 2>/dev/null || published=
export EPOCHCOST_PUBLISHED=$published

"$epochcost" check
"$epochcost" check --results
"$epochcost" build --strict --site-dir "$folder"

#!/bin/sh
# Make a private virtual environment with one locked set of packages and this checkout in it.
#
#   requirements/bootstrap.sh .venv requirements/dev.txt
#
# Needs Python 3.11 or newer (PYTHON names it; python3 by default). Where Debian's or Ubuntu's
# python3-venv is missing it is installed when root, else named with the command that installs it.
set -eu

venv=$1
lock=$2
python=${PYTHON:-python3}

fail() {
    echo "epochcost: $1" >&2
    exit 3
}

as_root_install() {
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        echo "epochcost: installing $1"
        apt-get update -qq && apt-get install -y -qq --no-install-recommends "$1" >/dev/null
    else
        fail "$2 is missing; install it with: sudo apt-get install $1"
    fi
}

command -v "$python" >/dev/null || fail "demanded Python 3.11 or newer; '$python' is not here"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "demanded Python 3.11 or newer; $python is $version (choose another: make PYTHON=python3.12)"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    as_root_install "python$version-venv" "Python's venv module"

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
echo "epochcost: installing the packages of $lock (a few minutes the first time)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation --editable .

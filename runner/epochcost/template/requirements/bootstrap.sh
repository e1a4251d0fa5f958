#!/bin/sh
# Make a virtual environment with the packages that a requirements file lists.
#
#   requirements/bootstrap.sh .venv requirements/report.txt
#
# Needs Python 3.11 or newer with venv; PYTHON names an interpreter other than python3.
set -eu

venv=$1
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$2"

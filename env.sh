. /work/main/.venv/bin/activate; export PYTHONPATH=/work/wt/dec/runner

"""`python -m epochcost`: the same program as the `epochcost` script."""

from epochcost.cli.app import main

if __name__ == "__main__":
    main()

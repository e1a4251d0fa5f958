"""`python -m onnxstep`: the command."""

from onnxstep.command import main

if __name__ == "__main__":
    main()

"""Run the command `onnxstep` for `python -m onnxstep`."""

from onnxstep.command import main

if __name__ == "__main__":
    main()

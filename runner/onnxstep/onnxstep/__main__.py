"""Let `python -m onnxstep` run the command `onnxstep`."""

from onnxstep.command import main

if __name__ == "__main__":
    main()

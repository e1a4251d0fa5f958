"""The published table: every figure of a project as one line, and the dictionary of its columns."""

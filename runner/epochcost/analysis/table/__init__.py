"""Make the table of a project's figures, one figure in each line, and describe the columns."""

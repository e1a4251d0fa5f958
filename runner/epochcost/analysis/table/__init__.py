"""Make the table of all figures of a project, one in each line, and describe its columns."""

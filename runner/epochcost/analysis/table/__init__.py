"""Make the table of a project's costs and times, and describe its columns."""

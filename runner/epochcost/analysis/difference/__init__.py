"""Compare two revisions of a project: changed costs with their causes, and changed results."""

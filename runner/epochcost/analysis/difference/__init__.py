"""Two revisions compared: changed costs with their causes, results, and the words for both."""

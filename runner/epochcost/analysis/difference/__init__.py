"""Two revisions compared: changed costs with their causes, changed results, and their texts."""

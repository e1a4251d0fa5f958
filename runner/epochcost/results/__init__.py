"""Stored measurements: the records, their versioned JSON form, and the folder of their files."""

"""What changes between two revisions: which costs and results, by what, and the words for it."""

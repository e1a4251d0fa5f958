"""The passes over a graph."""

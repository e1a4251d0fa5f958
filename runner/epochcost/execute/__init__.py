"""Build, measure, store and resume trials on this machine."""

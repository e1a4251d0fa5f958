"""Parse the command line, print answers and set exit codes; this package computes nothing."""

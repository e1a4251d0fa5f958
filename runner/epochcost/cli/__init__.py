"""The command line parses arguments, prints answers and sets exit codes; it computes nothing."""

"""The command line: arguments in, words and exit codes out. Nothing is computed here."""

"""Parse the command line, print answers and set exit codes; compute nothing here."""

"""Plan a study: list its trials in order, and the trials that are left out with the reason."""

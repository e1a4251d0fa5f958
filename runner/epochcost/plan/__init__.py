"""Plan a study: list its trials in order, and the omitted trials, each with the reason."""

"""From a study to ordered trials: which work is timed, and what is left out and why."""

"""Train on data: inputs of the steps, the training loop, schedules and saved states."""

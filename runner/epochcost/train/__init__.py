"""Training on data: what a model is fed, how its steps go on, and when it has learnt enough."""

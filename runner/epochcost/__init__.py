"""What a model costs to train and to serve, on which machine, at which price."""

__version__ = "0.1.0"

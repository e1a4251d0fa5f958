"""What a model is trained on: a teacher's labelled examples, in batches."""

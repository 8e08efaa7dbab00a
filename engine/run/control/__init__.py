"""What a sweep is worth, how far the next one goes, and when a run stops: of vectors, without a word of models."""

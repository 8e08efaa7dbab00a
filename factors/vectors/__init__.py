"""Factors of vectors, of probabilities that sum to one, and of positive definite matrices."""

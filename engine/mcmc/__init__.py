"""Markov chains: a driver for any kernel, its checkpoints, keys and progress."""

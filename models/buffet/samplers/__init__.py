"""Markov chains over which rows have which features: a sampler a module, each for every likelihood it can take."""

"""Blocks: the messages, evidence and expected log densities of the factors of a plan, one module for each kind."""

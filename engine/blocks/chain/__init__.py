"""Chains and trees: messages up and down, exact given all others."""

"""Gibbs sampling compiled from the graph: what each variable is drawn from given all others, and the draws."""

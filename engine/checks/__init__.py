"""How good a posterior is, told by other means than the run that made it."""

"""Rules: which block computes the messages of a factor with arguments of a given shape, or why there is none."""

"""The distribution of an expression of random variables, from the joint distribution of what it reads."""

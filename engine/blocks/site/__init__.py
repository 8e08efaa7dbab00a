"""EP for a scalar function of a linear form of Gaussians."""

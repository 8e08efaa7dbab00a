"""Where the density of a few scalars is looked at: its peak, grids, weighted points and rules for these."""

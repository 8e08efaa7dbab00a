"""A run: from first beliefs through sweeps to a verdict."""

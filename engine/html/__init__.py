"""Models, plans, posteriors, chains and trees as HTML, for notebooks and reports. Nothing here needs matplotlib."""

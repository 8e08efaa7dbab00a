"""Pictures of posteriors and of factor graphs. Only drawing loads matplotlib (the extra `plot`)."""

from .graph_plot import plot_graph
from .posterior import plot_convergence, plot_posterior

__all__ = ["plot_convergence", "plot_graph", "plot_posterior"]

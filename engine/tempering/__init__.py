"""The evidence by tempering: chains on a path from a reference to the posterior, which exchange their states."""

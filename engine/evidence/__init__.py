"""Evidence as a function of hyperparameters: its gradient, its maximum, and its integral."""

"""From a model to a plan: what the user declared becomes blocks, each with its operator and the reason for it."""

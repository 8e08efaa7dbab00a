"""The joint log density of a model: what samplers, checks and maximisers need."""

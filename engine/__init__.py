"""From a plan and data to a posterior: compiled message passing, and everything that is read off its end."""

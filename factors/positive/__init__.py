"""Factors whose outcome is positive, or a probability."""

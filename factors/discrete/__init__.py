"""Factors whose outcome is true or false, a class or a count."""

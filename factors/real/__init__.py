"""Factors whose outcome is a real number, or a function of one."""

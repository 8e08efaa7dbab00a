"""Factors made of other factors: what is observed in part, and what lies between bounds."""

"""Posteriors in files, and back."""

"""Jaxprs run by NumPy: an answer before there is machine code."""

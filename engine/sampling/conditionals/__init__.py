"""Moves that draw a variable given all others, by kind of conditional."""

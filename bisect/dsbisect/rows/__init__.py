"""Searching rows of the matrix."""

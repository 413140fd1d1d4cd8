"""Asking about rows of the matrix."""

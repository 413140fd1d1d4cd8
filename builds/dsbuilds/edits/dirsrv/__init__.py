"""Edits of 389-ds: how it stores a password by default."""

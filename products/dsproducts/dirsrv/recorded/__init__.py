"""Loads that a server recorded, as workloads."""

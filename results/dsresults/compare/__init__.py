"""Samples to ratios and to what was observed of each candidate. Pure."""

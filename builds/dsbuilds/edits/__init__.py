"""Changes to a source by what they mean, not by line numbers."""

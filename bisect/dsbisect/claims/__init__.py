"""What was published, measured here and judged."""

"""What was measured and what it means: the store, statistics for display, the report."""

"""What was measured, and what it means: the store, comparisons, reasons, the report."""

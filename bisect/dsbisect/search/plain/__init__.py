"""The plain search: halve, and confirm the neighbours."""

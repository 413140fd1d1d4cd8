"""What a standing watch has seen, its alarms, and its pages."""

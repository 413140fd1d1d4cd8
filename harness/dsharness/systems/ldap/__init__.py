"""What directory servers share."""

"""Trees of files, made of what a user names."""

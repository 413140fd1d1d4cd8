"""From what a user names to a tree of files."""

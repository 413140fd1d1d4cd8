"""What a git repository tells: commits, lines to search, equal commits, backports."""

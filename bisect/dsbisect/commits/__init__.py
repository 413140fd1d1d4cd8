"""A search from two revisions of a repository to the commit that made the server slow."""

"""The search over candidates, the one campaign loop and the command line."""

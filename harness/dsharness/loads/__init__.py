"""One file per load tool."""

"""One way of building each."""

"""What a search is, and the two there are. Pure: it imports nothing that touches the world."""

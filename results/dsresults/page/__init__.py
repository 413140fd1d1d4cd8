"""What a question is answered with: a page as a value, its charts, and its forms."""

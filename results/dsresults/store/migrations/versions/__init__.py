"""One module for each revision; a published one is never edited."""

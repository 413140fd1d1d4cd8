"""Several machines take the turns of one search; PostgreSQL is all that they share."""

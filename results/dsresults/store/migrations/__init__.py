"""How a database gets from any earlier schema to this one; run by schema.py on every open."""

"""How a database gets from any earlier schema to this one; run by store.py on every open."""

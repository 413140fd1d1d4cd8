"""How well the search finds steps in noise, compared with its peers: ``make bench-search``."""

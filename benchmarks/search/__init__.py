"""How well the search finds steps in noise, beside what others publish: ``make bench-search``."""

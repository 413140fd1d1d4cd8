"""How steady a measurement is, and whether answers hold, with and without a noisy neighbour."""

from dsproducts import assemble

assemble()

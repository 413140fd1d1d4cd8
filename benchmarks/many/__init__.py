"""What many machines and samples cost."""

from dsproducts import assemble

assemble()

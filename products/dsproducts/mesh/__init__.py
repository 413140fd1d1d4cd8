"""What all meshes have in common: peers of one network, what drives them, and their loads.

A mesh is no product: each program that makes one is, with a folder of its own.
"""

"""Edits of 389-ds: how it stores a password by default."""

from __future__ import annotations

from dsbuilds.edits.edit import Edit
from dsproducts.dirsrv.edits.rounds import CRounds, RustRounds
from dsproducts.dirsrv.edits.scheme_edits import DefaultScheme

EDITS: tuple[Edit, ...] = (DefaultScheme(), RustRounds(), CRounds())

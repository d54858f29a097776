"""The base of the tree."""

from __future__ import annotations


class SealaneError(Exception):
    """The base of all errors of this package."""

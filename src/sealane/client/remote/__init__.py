"""Lanes over the network: links to nodes that are kept alive, and a broker at their end."""

from sealane.client.remote.connecting import connect

__all__ = ["connect"]

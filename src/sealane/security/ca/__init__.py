"""The node's own certificate authority: who holds which certificate, and whether it still counts."""

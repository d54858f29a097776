"""Keys, sealing and, later, identities and grants."""

"""The lake's own keys: what seals bodies that lie in it, and what makes hashes of phone numbers."""

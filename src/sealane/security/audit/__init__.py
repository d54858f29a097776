"""The audit log's entries, and the chain of hashes that they are."""

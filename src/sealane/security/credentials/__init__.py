"""By what accounts come in: API keys, passwords, tokens."""

"""Arrow: payloads that are one IPC stream each, or one record batch without its schema."""

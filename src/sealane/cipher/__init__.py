"""Sealane's own sender and receiver for CipherMQ's protocol: no broker between them can read what they say."""

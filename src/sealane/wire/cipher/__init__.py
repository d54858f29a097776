"""The text protocol of CipherMQ: commands, replies and encrypted messages. Both ends use it."""

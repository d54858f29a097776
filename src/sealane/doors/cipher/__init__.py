"""The text protocol of CipherMQ: queues and exchanges by commands of one line each, for clients with plain sockets.

`docs/cipher.md` says what it promises. The lines themselves are in `sealane.wire.cipher`, which does no I/O.
"""

"""The native protocol, without I/O: frames, what they say, and what a connection may do. Client and node share it.

`docs/protocol.md` tells the same to whoever writes a client in another language.
"""

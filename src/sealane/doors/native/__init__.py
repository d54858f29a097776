"""The native door: the protocol of `sealane.wire` on TCP."""

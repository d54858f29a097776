"""Protobuf: payloads that are one message each, in Protobuf's binary encoding."""

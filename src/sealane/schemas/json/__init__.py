"""JSON Schema: payloads that are one JSON document each."""

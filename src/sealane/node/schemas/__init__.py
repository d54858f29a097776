"""The registry of schemas: which topics have one, in which versions, and that what is published to them fits."""

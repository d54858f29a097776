"""A decoder of Avro that reads one field of all rows at a time, with numpy, and makes Arrow columns of it."""

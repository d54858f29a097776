"""A job that is killed at every step of its writes, and started again."""

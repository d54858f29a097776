"""A node is killed and started again under load, and a recorder outside of it tells whether it kept its word."""

"""What principals and roles may do."""

"""How much principals and domains may do a second."""

"""Keys of what is stored, and sealing by them."""

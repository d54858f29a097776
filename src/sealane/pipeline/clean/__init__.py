"""From messages as they came to messages that may be kept: numbers hashed, bodies checked and sealed."""

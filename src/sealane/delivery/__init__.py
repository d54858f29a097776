"""The delivery core: who gets which message, when, and what happened to it. State machines with no I/O."""

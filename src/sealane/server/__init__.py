"""The process that runs a node: its settings, how its parts are put together, and how it starts and stops."""

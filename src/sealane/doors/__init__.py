"""The doors: protocols by which clients come in. Each turns what it hears into commands of a `Session` of the gate."""

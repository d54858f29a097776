"""Work over all that the lake has: each job can be tried first, stopped, and gone on with."""

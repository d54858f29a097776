"""Ways to tell who someone is: each takes one kind of what can be shown, and leaves the rest to others."""

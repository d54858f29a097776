"""What can be asked for under `/api/v1`: a file for each kind of resource. `routes.py` puts them together."""

"""Tables of single topics: a column for each field of the schemas that the topic has registered."""

"""What users say: the options of the source and the sink, and how the node is reached."""

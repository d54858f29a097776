"""Every decoder is fuzzed: a target each, inputs that were kept, and runs that are guided by coverage or are not.

Nothing is imported here: a guided run instruments what its target imports, and must come first.
"""

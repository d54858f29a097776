"""What the doors have in common whose protocols have no word for who comes: `frames` and `cipher`.

Both are plain text by the documents that describe them. So the settings say who everyone is who comes in, they listen
for this machine alone unless they speak TLS or somebody says otherwise, and they are off until somebody wants them.
"""

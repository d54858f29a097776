#!/bin/sh
# Leaves in a directory what Prometheus needs to read a node's metrics: ca.crt, to know the node by, and metrics.key, an
# API key that may do nothing else. Whoever is of the directory's group may read them. Run it again as often as you like.
#
#   introduce.sh DIRECTORY
set -eu
directory=$1
key=$directory/metrics.key

# The directory may be older than the node's data: what counts is whether the node knows the key.
is_known() {
    [ -s "$key" ] && sealane key list --json | grep --quiet "\"id\": \"$(cut -d_ -f2 "$key")\""
}

make_key() {
    sealane grant add role:watcher consume _system/metrics >&2
    sealane key create prometheus --role watcher --allow consume:_system/metrics --label metrics --json |
        python -c 'import json, sys; print(json.load(sys.stdin)["key"])'
}

umask 0027
chmod 0750 "$directory"
sealane ca show --pem >"$directory/ca.crt"
if ! is_known; then
    made=$(make_key)
    rm -f "$key"
    printf '%s\n' "$made" >"$key"
fi

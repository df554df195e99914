#!/bin/sh
# pull: usage, and what it shows while it fetches from a hub on the loopback interface.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python
need_pull

while IFS='|' read -r args message; do
    # shellcheck disable=SC2086
    run pull $args
    status 2
    out ''
    err "tinygpt: error: $message"
done <<'END'
|pull needs a model: REPO, REPO:FILE, a URL, or a name of tinygpt list --catalog
--max-wait -1 a/b|--max-wait: '-1' is not a number from 0 to 86400
--max-wait|--max-wait needs an argument: a number from 0 to 86400
--incude x a/b|unknown option --incude (did you mean --include?)
--sha256 12 a/b|a SHA-256 has 64 hexadecimal digits (found 2 bytes)
--catalog a/b|pull has no option --catalog; list has one
END
run pull --offline a/b
status 5
one_error

"$PYTHON" tests/support/pull_progress.py "$TINYGPT" || exit 1
finish

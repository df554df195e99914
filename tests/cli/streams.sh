#!/bin/sh
# R01, R02 of the fault catalogue: every command that writes to stdout, and what may be wrong with that.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python
"$PYTHON" tests/runtime/streams.py "$TINYGPT" || exit 1
finish

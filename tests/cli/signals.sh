#!/bin/sh
# R03 to R05 and R28 of the fault catalogue: what comes from outside while it runs.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python
"$PYTHON" tests/runtime/signals.py "$TINYGPT" || exit 1
finish

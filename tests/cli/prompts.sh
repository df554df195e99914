#!/bin/sh
# R09, R10, R12 of the fault catalogue: prompts of no size and of any.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python
"$PYTHON" tests/runtime/prompts.py "$TINYGPT" || exit 1
finish

#!/bin/sh
# Long runs at constant memory, and pages that processes share. LONG=600 tests/cli/memory.sh runs each for ten minutes.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python
"$PYTHON" tests/runtime/memory.py "$TINYGPT" || exit 1
finish

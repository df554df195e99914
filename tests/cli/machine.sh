#!/bin/sh
# R31 to R33, R39, R40 of the fault catalogue, and R02 and R34 on a full file system.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python
"$PYTHON" tests/runtime/machine.py "$TINYGPT" || exit 1
finish

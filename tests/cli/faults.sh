#!/bin/sh
# Calls of the system that fail, and allocations (R05, R24, R27, R34).
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python
[ -x "${BUILD:-build/release}/tests/support/syscalls.so" ] || {
    echo "${BUILD:-build/release}/tests/support/syscalls.so is not there"
    exit 77
}
exec "$PYTHON" tests/faults/faults.py

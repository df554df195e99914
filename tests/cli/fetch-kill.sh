#!/bin/sh
# Downloads that are killed, and calls of the system that fail (D29, D31, U29).
. "$(dirname "$0")/../support/cli.sh"
need_python
[ -x "${BUILD:-build/release}/tests/fetch/driver" ] || {
    echo "${BUILD:-build/release}/tests/fetch/driver is not there"
    exit 77
}
exec "$PYTHON" tests/fetch/kill.py

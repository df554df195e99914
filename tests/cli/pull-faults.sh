#!/bin/sh
# D01 to D37 of the fault catalogue, against a hub on the loopback interface.
. "$(dirname "$0")/../support/cli.sh"
need_python
need_pull
exec "$PYTHON" tests/fetch/faults.py

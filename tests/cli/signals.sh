#!/bin/sh
# Signals: the first stops at a token, and the exit status names it; what the parent ignored stays so.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python
exec "$PYTHON" tests/support/signals.py "$TINYGPT"

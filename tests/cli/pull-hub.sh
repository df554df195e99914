#!/bin/sh
# What pull fetches, where it lies, list and rm, and -m hf:NAME, against a hub on the loopback interface.
. "$(dirname "$0")/../support/cli.sh"
need_python
need_pull
need_model
exec "$PYTHON" tests/fetch/pulls.py

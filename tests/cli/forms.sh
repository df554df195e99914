#!/bin/sh
# M01 to M60 and A01 to A23 of the fault catalogue: malformed and valid model files, each given to the program.
. "$(dirname "$0")/../support/cli.sh"
need_python
exec "$PYTHON" tests/forms/forms.py

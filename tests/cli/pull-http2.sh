#!/bin/sh
# Several files over one connection, where nghttpd can serve them.
. "$(dirname "$0")/../support/cli.sh"
need_python
need_pull
NGHTTPD=$(PATH=$PATH:/usr/sbin command -v nghttpd) || {
    echo "nghttpd is not there"
    exit 77
}
exec "$PYTHON" tests/fetch/http2.py "$NGHTTPD"

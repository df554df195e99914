# cli.sh - sourced by tests/cli/*.sh: run the program, compare stdout, stderr and exit status.
#
#     run ARGS...             the program, stdin empty
#     run_in ARGS...          the program, stdin as it is (may stand in a pipeline)
#     status N                what it should have exited with
#     out TEXT, err TEXT      all it should have written (err: without the last newline)
#     out_is FILE             the same, from a file
#     out_has, err_has TEXT   a part of it
#     ok NAME COMMAND...      a command that should succeed
#     finish                  the last line of a test
#
# $T is a scratch folder; files there: out, err, rc of the last run.

cd "$(dirname "$0")/../.." || exit 1
TINYGPT=${TINYGPT:-./tinygpt}
MODEL=models/tales.gguf
PYTHON=${PYTHON:-python3}
TINYGPT_NO_CURL=${TINYGPT_NO_CURL:-build/release/tinygpt-no-curl}
unset TINYGPT_MODEL OMP_NUM_THREADS HF_HUB_CACHE HF_ENDPOINT HF_TOKEN HF_TOKEN_PATH HF_HUB_OFFLINE
T=$(mktemp -d) || exit 1
export HF_HOME="$T/hf" XDG_CACHE_HOME="$T/cache" PYTHONDONTWRITEBYTECODE=1
trap 'rm -rf "$T"' EXIT
failures=$T/failures
: >"$failures"

[ -x "$TINYGPT" ] || {
    echo "$TINYGPT is not there"
    exit 1
}

need_model() {
    [ -f "$MODEL" ] && return
    echo "$MODEL is not there"
    exit 77
}

need_python() {
    command -v "$PYTHON" >/dev/null 2>&1 && return
    echo "$PYTHON is not there"
    exit 77
}

# For tests of downloads: skips where there is no libcurl.
need_pull() {
    HOME=$T HF_ENDPOINT=http://127.0.0.1:9 TINYGPT_FETCH_PACE=0 "$TINYGPT" pull owner/name 2>&1 |
        grep -q 'without libcurl' || return
    echo "$TINYGPT was built without libcurl"
    exit 77
}

run() {
    run_in "$@" </dev/null
}

run_in() {
    printf 'tinygpt %s\n' "$*" >"$T/what"
    "$TINYGPT" "$@" >"$T/out" 2>"$T/err"
    echo $? >"$T/rc"
}

fail() {
    echo "FAIL: $(cat "$T/what" 2>/dev/null): $1"
    echo "  status $(cat "$T/rc" 2>/dev/null)"
    echo "  stdout: $(head -c 2000 "$T/out" 2>/dev/null | od -An -c | head -n 20)"
    echo "  stderr: $(head -c 2000 "$T/err" 2>/dev/null)"
    echo x >>"$failures"
}

status() {
    [ "$(cat "$T/rc")" = "$1" ] || fail "exit status should be $1"
}

out() {
    printf '%s' "$1" >"$T/want"
    cmp -s "$T/want" "$T/out" || fail "stdout should be: $1"
}

out_is() {
    cmp -s "$1" "$T/out" || fail "stdout should be what $1 holds"
}

err() {
    [ "$(cat "$T/err")" = "$1" ] || fail "stderr should be: $1"
}

out_has() {
    grep -qF -e "$1" "$T/out" || fail "stdout should have: $1"
}

err_has() {
    grep -qF -e "$1" "$T/err" || fail "stderr should have: $1"
}

# One line of error, whatever it says.
one_error() {
    [ "$(wc -l <"$T/err")" -eq 1 ] && grep -q '^tinygpt: error: ' "$T/err" ||
        fail "stderr should be one line of error"
}

ok() {
    ok_what=$1
    shift
    "$@" || fail "$ok_what"
}

finish() {
    [ -s "$failures" ] && exit 1
    exit 0
}

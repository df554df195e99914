#!/bin/sh
# The program of a release build is hardened: README, Security, says by what. Flags of the user win, and are not judged.
. "$(dirname "$0")/../support/cli.sh"
if grep -q -e -DTG_DEBUG "${BUILD:-build/release}/flags" || [ -n "$CPPFLAGS$CFLAGS$LDFLAGS" ]; then
    echo "not a release build with its own flags"
    exit 77
fi
command -v readelf >/dev/null 2>&1 || {
    echo "readelf is not there"
    exit 77
}
echo "$TINYGPT" >"$T/what"
readelf -hdlW --dyn-syms "$TINYGPT" >"$T/out" 2>"$T/err" || fail "readelf should read it"

while read -r line; do
    grep -qE "$line" "$T/out" || fail "readelf should show: $line"
done <<'END'
Type: +DYN \(
GNU_RELRO
\(FLAGS_1\) +Flags: NOW PIE
GNU_STACK .* RW +0x
__stack_chk_fail
__memcpy_chk
END
ok "nothing is both written and executed" test -z "$(grep -E '^ +(LOAD|GNU_STACK) .* (RWE|WE) ' "$T/out")"
ok "code is apart from what is only read" test "$(grep -E '^ +LOAD .* R E ' "$T/out" | wc -l)" -eq 1

# Each page of a large frame is touched in turn, and what is jumped to is marked: seen in the code alone.
if readelf -h "$TINYGPT" | grep -q X86-64 && command -v objdump >/dev/null 2>&1; then
    objdump -d --no-show-raw-insn "$TINYGPT" >"$T/code"
    ok "frames are probed" grep -qE '(or|mov)q +\$0x0,(0x0)?\(%rsp\)' "$T/code"
    ok "functions begin with a mark" test "$(grep -c endbr64 "$T/code")" -gt 1000
fi
finish

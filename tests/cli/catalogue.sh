#!/bin/sh
# Every row of the fault catalogue stands in a test, by its number.
. "$(dirname "$0")/../support/cli.sh"

# texts that people wrote: no models, no corpus, nothing that was made
find tests \( -name '*.sh' -o -name '*.py' -o -name '*.[ch]' -o -path 'tests/models/*' \) -type f ! -name catalogue.sh \
    ! -path '*/golden/*' -exec cat {} + | tr '[:lower:]' '[:upper:]' | grep -aoE '\b[A-Z][0-9]{2}\b' | sort -u >"$T/rows"

# letter, number of rows
while read -r letter n; do
    i=1
    while [ "$i" -le "$n" ]; do
        row=$letter$(printf %02d "$i")
        grep -qx "$row" "$T/rows" || fail "no test has $row"
        i=$((i + 1))
    done
done <<'END'
D 37
R 40
U 30
M 68
A 23
END

finish

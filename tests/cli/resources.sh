#!/bin/sh
# Less memory, fewer threads and fewer descriptors than are wanted: R25, R26 and R38 of the fault catalogue.
. "$(dirname "$0")/../support/cli.sh"
need_model
FLOATS=tests/golden/gguf/llama.f32.gguf
gen() {
    run generate -q --temp 0 -n 4 "$@"
}
# The same with so many KiB of address space.
within() {
    (ulimit -v "$1" && shift && gen "$@")
}
asan=$(grep -qa libasan "$TINYGPT" && echo yes) # reserves terabytes

# R25: need, limit and what makes it less; before anything is loaded
gen -t 1 "Once upon a time" && cp "$T/out" "$T/whole"
if [ ! "$asan" ]; then
    within 1000000 -t 1 -c 1000000 --kv-type f32 "Once"
    status 7
    out ''
    one_error
    ok "R25: need and limit" grep -qE '[0-9.]+ MiB are needed for the cache .*limit of 976.6 MiB of address space \(ulimit -v\)' "$T/err"
    err_has '; -c, -b, --kv-type and --blas off make it less'
    truncate -s 3G "$T/large.gguf"
    within 1000000 -m "$T/large.gguf" "Once"
    status 7
    one_error
    err_has '3072.0 MiB are needed for the contents of a file'
    within 1000000 -m "$T/large.gguf" --no-mmap "Once"
    status 7
    err_has 'without --no-mmap it takes less'
    # quantised weights ask for no BLAS, and that for no buffers
    within 130000 -t 1 "Once upon a time"
    status 0
    out_is "$T/whole"
    # R26: OpenBLAS, too little room for two threads and for one
    gen -t 1 -m $FLOATS "ab" && cp "$T/out" "$T/floats"
    run generate --seed 1 --temp 0 -n 4 -t 4 -m $FLOATS "ab"
    (ulimit -v 700000 && OMP_NUM_THREADS=2 run generate --seed 1 --temp 0 -n 4 -t 4 -m $FLOATS "ab")
    status 0
    out_is "$T/floats"
    ok "R26: fewer threads" grep -qE 'warning: fewer threads can be had than there should be: [123]$' "$T/err"
    # what is enough stays enough when there is more: with scratch memory of many threads, and with OpenBLAS
    enough() {
        least=$1 step=$2 reached=0
        shift 2
        for i in 0 1 2 3 4 5 6 7 8 9; do
            (ulimit -v $((least + i * step)) && exec timeout 20 "$TINYGPT" generate -q --temp 0 -n 4 "$@") >"$T/out" 2>"$T/err"
            rc=$?
            ok "R26: $* within $((least + i * step)) KiB: $rc, $(cat "$T/err")" test $rc -eq 0 -o "$reached $rc" = "0 7"
            [ $rc -ne 0 ] || reached=1
        done
        ok "R26: $* is enough at the end" test $reached -eq 1
    }
    (export OMP_STACKSIZE=64K && enough 46000 1010 -t 64 "Once")
    enough 220000 20000 -t 16 -c 16384 -b 8192 "Once"
    enough 440000 20000 -t 2 -b 16384 -m $FLOATS "ab"
    enough 300000 50000 -m $FLOATS "ab"
    # OpenBLAS has no more threads of its own than there are processors, whatever is said
    (export OMP_NUM_THREADS=99999999 && within $((450000 + 140000 * $(getconf _NPROCESSORS_CONF))) -m $FLOATS "ab")
    status 0
    out_is "$T/floats"
    # R26: what is said to OpenMP
    (ulimit -v 600000 && OMP_STACKSIZE=1G run generate --temp 0 -n 4 -t 2 "Once upon a time")
    status 0
    out_is "$T/whole"
    err_has 'warning: fewer threads can be had than there should be: 1'
    OMP_THREAD_LIMIT=2 run generate --temp 0 -n 4 -t 3 "Once upon a time"
    status 0
    out_is "$T/whole"
    err_has 'warning: fewer threads can be had than there should be: 2'
    within 250000 -t 2 -m $FLOATS "ab"
    status 7
    out ''
    one_error
    err_has 'OpenBLAS'
    err_has '--blas off'
    (ulimit -v 250000 && run --version)
    status 0
    out_has 'OpenBLAS has no room here (ulimit -v)'
    within 250000 -t 1 -m $FLOATS --blas off "ab"
    status 0
    out_is "$T/floats"
fi

# R26: threads that do not start; the text is the same
shim=$(dirname "$(readlink -f "${BUILD:-build/release}/tinygpt")")/tests/support/syscalls.so
if [ -f "$shim" ] && [ ! "$asan" ]; then
    for most in 1 2 3; do
        LD_PRELOAD=$shim SYSCALLS_THREADS=$most run generate --temp 0 -n 4 -t 4 "Once upon a time"
        status 0
        out_is "$T/whole"
        err_has "warning: fewer threads can be had than there should be: $most"
        LD_PRELOAD=$shim SYSCALLS_THREADS=$most run quantize -q -t 4 "$MODEL" "$T/q.$most" --type Q4_0 --requantize
        status 0
        ok "R26: quantize by $most" cmp -s "$T/q.1" "$T/q.$most"
    done
    # no OpenBLAS on this machine: quantised weights need none, others can do without
    no_blas() {
        LD_PRELOAD=$shim SYSCALLS_ONLY=dlopen SYSCALLS_AT=1 SYSCALLS_FROM=1 SYSCALLS_DO=ENOENT run "$@"
    }
    no_blas generate -t 1 -n 4 --temp 0 -m $FLOATS "ab"
    status 9
    out ''
    one_error
    err_has 'OpenBLAS cannot be loaded: libnowhere.so: '
    err_has '; --blas off does without it'
    no_blas generate -t 1 -n 4 --temp 0 -m $FLOATS --blas off "ab"
    status 0
    no_blas generate --temp 0 -n 4 "Once upon a time"
    status 0
    out_is "$T/whole"
    no_blas --version
    status 0
    out_has 'OpenBLAS cannot be loaded'
fi

# R38: no more than so many descriptors: all is done, or nothing
limited() {
    printf 'tinygpt %s, %s descriptors\n' "$2" "$1" >"$T/what"
    # shellcheck disable=SC2086
    (ulimit -n "$1" && exec "$TINYGPT" $2) </dev/null >"$T/out" 2>"$T/err"
    echo $? >"$T/rc"
}
mkdir "$T/d"
for command in "generate -q -t 1 --temp 0 -n 1 --session F Once" "logits -q --ids 1 --format npy -o F" \
    "quantize -q tests/golden/llama-shards F --type F16" "perplexity -q -m $FLOATS -f tests/cli/pull.sh -c 64 --save-logits F" \
    "chat -q -t 1 --chat-template chatml --temp 0 -n 1 --session F Once" "list"; do
    command=$(echo "$command" | sed "s|F |$T/d/f |; s|F$|$T/d/f|")
    limited 32 "$command"
    status 0
    all=$(ls -A "$T/d")
    for most in 9 8 7 6 5 4; do
        rm -f "$T/d/"*
        limited $most "$command"
        case $(cat "$T/rc") in
        0) ok "R38: all is there" [ "$(ls -A "$T/d")" = "$all" ] ;;
        7 | 9) one_error && ok "R38: nothing is left" [ -z "$(ls -A "$T/d")" ] ;;
        *) fail "R38" ;;
        esac
    done
    rm -f "$T/d/"*
done

finish

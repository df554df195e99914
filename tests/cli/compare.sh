#!/bin/sh
# tools/compare-peers.py with a peer that is a script: what it asks, and what it makes of the answers.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python

# Twice as fast with -fa 1; knows no q8_0.
cat >"$T/peer" <<'END_PEER'
#!/bin/sh
echo "$*" >>"$0.log"
case "$*" in
--help) echo "-p, --n-prompt <n>   -d, --n-depth <n>" && exit ;;
*q8_0*) echo "main: error: no q8_0 today" >&2 && exit 1 ;;
*"-fa 1"*) echo 'noise [{"samples_ts": [2e9]}]' | sed 's/noise //' ;;
*) echo '[{"samples_ts": [1e9]}]' ;;
esac
END_PEER
chmod +x "$T/peer"
compare() {
    echo "compare-peers.py $*" >"$T/what"
    "$PYTHON" tools/compare-peers.py -m "$MODEL" --tinygpt "$TINYGPT" -t 1 "$@" >"$T/out" 2>"$T/err" </dev/null
    echo $? >"$T/rc"
}

compare --llama "$T/peer" --ik "$T/none" -p 4 -n 2 -d 0,8 --rounds 2 --kv-type f16,q8_0 --json "$T/json"
status 0
err_has "without ik_llama.cpp: "
out_has "| test | threads | kv | tinygpt t/s | % of limit | llama.cpp t/s | tinygpt / llama.cpp |"
ok "a row for each test" [ "$(wc -l <"$T/out")" -eq 10 ]
ok "the better setting" [ "$(grep -c '| f16 |.*| 2000000000.00 (-fa 1) |' "$T/out")" -eq 4 ]
ok "what failed is told" [ "$(grep -c '| q8_0 |.*| failed: status 1: main: error: no q8_0 today | - |' "$T/out")" -eq 4 ]
err_has 'left out, failed or far behind its best setting'
ok "nothing hopeless twice" [ "$(grep -c 'fa 0' "$T/peer.log")" -eq 4 ]
ok "nothing that fails twice" [ "$(grep -c q8_0 "$T/peer.log")" -eq 4 ]
ok "depths are asked for" [ "$(grep -c -e '-d 8' "$T/peer.log")" -eq 8 ]
ok "all samples are kept" "$PYTHON" - "$T/json" <<'END_PYTHON'
import json, sys
samples = json.load(open(sys.argv[1]))["samples"]
ours = [s for s in samples if s["engine"] == "tinygpt"]
assert len({(s["test"], s["kv_type"], s["setting"]) for s in ours}) == 2 * 2 * 2 * 2
assert all(s["ts"] > 0 and s["percent_of_limit"] > 0 for s in ours)
assert len({(s["test"], s["kv_type"], s["logits_hash"]) for s in ours}) == 2 * 2 * 2  # one for both layouts
assert sum("error" in s for s in samples) == 4
END_PYTHON

compare -p 0 -n 0
status 1
compare -p 1 -n 0 --rounds 1 --peer "none=$T/none"
status 0
ok "alone" [ "$(wc -l <"$T/out")" -eq 3 ]

finish

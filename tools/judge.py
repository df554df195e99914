#!/usr/bin/env python3
"""judge.py LIST <FINDINGS: fails where what was found is not what LIST excuses, or LIST excuses what is no longer found.

A finding is a line `file:line: kind: source`; where the source is left out, it is that line of the file. LIST has it
without the number of the line, as code moves, below a comment that says why it is right."""
import sys


def source_of(path, line):
    with open(path, encoding="utf-8") as f:
        return f.readlines()[int(line) - 1].strip()


def main():
    excused, reason, wrong = set(), False, []
    with open(sys.argv[1], encoding="utf-8") as f:
        for line in map(str.strip, f):
            if not line or line.startswith("#"):
                reason = bool(line)
            elif reason:
                excused.add(line)
            else:
                wrong.append(f"without a reason: {line}")
    found = {}
    for line in sys.stdin:
        path, number, rest = line.rstrip("\n").split(":", 2)
        kind, _, source = rest.strip().partition(": ")
        found[f"{path}: {kind}: {source or source_of(path, number)}"] = number
    wrong += [f"{key} (line {number})" for key, number in found.items() if key not in excused]
    wrong += [f"no longer so, or no longer there: {key}" for key in sorted(excused - found.keys())]
    for line in wrong:
        print(line)
    print(f"{len(found)} found, {len(excused)} excused in {sys.argv[1]}, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Copies a GGUF file and spoils one float32 of it, by default the first of the output norm, by default with a NaN:
spoil.py IN OUT [TENSOR INDEX VALUE]. INDEX may be a range, FIRST-LAST."""
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9

tensor, index, value = sys.argv[3:6] or ("output_norm.weight", 0, "nan")
data = bytearray(open(sys.argv[1], "rb").read())
at = 0


def number(form):
    global at
    (value,) = struct.unpack_from("<" + form, data, at)
    at += struct.calcsize(form)
    return value


def string():
    global at
    n = number("Q")
    at += n
    return bytes(data[at - n : at])


def skip(kind):
    global at
    if kind == STRING:
        string()
    elif kind == ARRAY:
        kind, n = number("I"), number("Q")
        for _ in range(n):
            skip(kind)
    else:
        at += SIZES[kind]


at = 8
n_tensors, n_pairs = number("Q"), number("Q")
alignment = 32
for _ in range(n_pairs):
    key, kind = string(), number("I")
    if key == b"general.alignment":
        alignment = struct.unpack_from("<I", data, at)[0]
    skip(kind)
offset = None
for _ in range(n_tensors):
    name, n_dim = string(), number("I")
    at += 8 * n_dim
    kind, where = number("I"), number("Q")
    if name.decode() == tensor:
        assert kind == 0, "float32 is expected"
        offset = where
start = (at + alignment - 1) // alignment * alignment + offset
first, last = (int(i) for i in (str(index).split("-") * 2)[:2])
for i in range(first, last + 1):
    struct.pack_into("<f", data, start + 4 * i, float(value))
open(sys.argv[2], "wb").write(data)

#!/usr/bin/env python3
"""Writes tests/kernel/dtype_vectors.h: how ggml's types lie in a file and what blocks of them decode to, both
as the gguf package knows it. Needs numpy and gguf (PyPI).

    tools/make-dtype-vectors.py > tests/kernel/dtype_vectors.h
"""
from importlib.metadata import version

import gguf
import numpy as np

TYPES = ["Q8_0", "Q4_0", "Q4_1", "BF16"]
N_HALVES = {"Q8_0": 1, "Q4_0": 1, "Q4_1": 2}  # scales at the start of a block
N_BLOCKS = 6
# An intermediate of ggml's products that is never stored; the package's size for it is not ggml's.
SKIPPED = ["Q8_1"]


def rows(values, form, per_line):
    for i in range(0, len(values), per_line):
        print("    " + ", ".join(form % v for v in values[i : i + per_line]) + ",")


def raw_blocks(rng, name, block_bytes):
    """Random bytes, every byte value likely; scales are finite, the last ones subnormal, zero and huge."""
    n = N_BLOCKS if name in N_HALVES else 96
    raw = rng.integers(0, 256, (n, block_bytes), dtype=np.uint8)
    for i in range(n):
        for k in range(N_HALVES.get(name, 0)):
            half = {n - 1: 0x0001, n - 2: 0x8000, n - 3: 0x7BFF}.get(i, rng.integers(0x2000, 0x4400))
            raw[i, 2 * k : 2 * k + 2] = np.frombuffer(np.uint16(half).tobytes(), np.uint8)
    return raw


def main():
    rng = np.random.default_rng(20240229)
    print("/* Made by tools/make-dtype-vectors.py with gguf %s; not edited by hand. */" % version("gguf"))
    print("#include <stdint.h>\n")
    print("static const struct {\n    uint32_t id;\n    const char *name;\n    int block, block_bytes;")
    print("} vec_layouts[] = {")
    for t in gguf.GGMLQuantizationType:
        if t.name not in SKIPPED:
            print('    {%d, "%s", %d, %d},' % (t, t.name, *gguf.GGML_QUANT_SIZES[t]))
    print("};\n")
    for name in TYPES:
        t = gguf.GGMLQuantizationType[name]
        raw = raw_blocks(rng, name, gguf.GGML_QUANT_SIZES[t][1])
        out = gguf.quants.dequantize(raw.reshape(1, -1), t).astype(np.float32).reshape(-1)
        print("static const uint8_t vec_%s_raw[] = {" % name.lower())
        rows(raw.reshape(-1), "%d", 24)
        print("};\nstatic const uint32_t vec_%s_bits[] = {" % name.lower())
        rows(out.view(np.uint32), "0x%08x", 8)
        print("};\n")


main()

#!/usr/bin/env python3
"""Writes tests/kernel/dtype_vectors.h: how ggml's types lie in a file and what blocks of them decode to, both
as the gguf package knows it: a few blocks in full, and a hash over the numbers of many. Needs numpy and gguf
(PyPI).

    tools/make-dtype-vectors.py > tests/kernel/dtype_vectors.h
"""
from importlib.metadata import version

import gguf
import numpy as np

# Where the float16 scales of a block start.
TYPES = {"BF16": [], "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82],
         "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": []}
N_HASHED = 64
# An intermediate of ggml's products that is never stored; the package's size for it is not ggml's.
SKIPPED = ["Q8_1"]


def rows(values, form, per_line):
    for i in range(0, len(values), per_line):
        print("    " + ", ".join(form % v for v in values[i : i + per_line]) + ",")


def shown_blocks(rng, halves, columns, block_bytes):
    """Random bytes; scales are finite, among several blocks the last ones subnormal, zero and huge."""
    n = {1: 96, 32: 6, 256: 1}[columns]
    raw = rng.integers(0, 256, (n, block_bytes), dtype=np.uint8)
    for k in halves:
        scales = rng.integers(0x2000, 0x4400, n, dtype=np.uint16)
        if n > 1:
            scales[-3:] = [0x7BFF, 0x8000, 0x0001]
        raw[:, k : k + 2] = scales.view(np.uint8).reshape(n, 2)
    return raw


def random_bytes(seed, n):
    """tests/support/rand.h: xorshift64*, the lowest byte of each number."""
    mask, state, out = (1 << 64) - 1, seed, bytearray()
    for _ in range(n):
        state ^= state >> 12
        state ^= state << 25 & mask
        state ^= state >> 27
        out.append(state * 0x2545F4914F6CDD1D & 0xFF)
    return np.frombuffer(out, np.uint8).copy()


def random_blocks(seed, halves, block_bytes):
    """tests/support/blocks.h"""
    raw = random_bytes(seed, N_HASHED * block_bytes).reshape(N_HASHED, block_bytes)
    for k in halves:
        raw[:, k + 1] &= 0xBF
    return raw


def fnv(words):
    """FNV-1a over 32-bit words (tests/support/fnv.h)."""
    h = 0xCBF29CE484222325
    for word in words.tolist():
        h = (h ^ word) * 0x100000001B3 & (1 << 64) - 1
    return h


def decoded(raw, kind):
    out = gguf.quants.dequantize(raw.reshape(1, -1), kind).astype(np.float32).reshape(-1)
    return out.view(np.uint32)


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
    hashes = {}
    for name, halves in TYPES.items():
        kind = gguf.GGMLQuantizationType[name]
        columns, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        raw = shown_blocks(rng, halves, columns, block_bytes)
        print("static const uint8_t vec_%s_raw[] = {" % name.lower())
        rows(raw.reshape(-1), "%d", 24)
        print("};\nstatic const uint32_t vec_%s_bits[] = {" % name.lower())
        rows(decoded(raw, kind), "%#x", 9)
        print("};\n")
        hashes[name] = fnv(decoded(random_blocks(1 + kind, halves, block_bytes), kind))
    print("/* FNV-1a over the numbers of n_hashed random blocks: seed 1 + id. */")
    print("enum { n_hashed = %d };\n" % N_HASHED)
    print("static const struct {\n    uint32_t id;\n    const uint8_t *raw;\n    const uint32_t *bits;")
    print("    size_t n_raw, n;\n    uint64_t hash;\n} vec_types[] = {")
    for name, h in hashes.items():
        v = "vec_" + name.lower()
        print("    {%d, %s_raw, %s_bits, sizeof %s_raw, sizeof %s_bits / 4, 0x%016xu},"
              % (gguf.GGMLQuantizationType[name], v, v, v, v, h))
    print("};")


main()

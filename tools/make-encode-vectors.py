#!/usr/bin/env python3
"""Writes tests/kernel/encode_vectors.h: numbers, and the blocks that the gguf package makes of them. Needs numpy and
gguf (PyPI).

    tools/make-encode-vectors.py > tests/kernel/encode_vectors.h
"""
from importlib.metadata import version

import gguf
import numpy as np

TYPES = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]


def rows(values, form, per_line):
    for i in range(0, len(values), per_line):
        print("    " + ", ".join(form % v for v in values[i : i + per_line]) + ",")


def numbers(rng):
    """Blocks of 32: of several sizes and shapes, constant, of one sign, with one number that stands out."""
    x = rng.standard_normal((20, 32)) * 10.0 ** rng.uniform(-4, 3, (20, 1))
    x[3] = rng.standard_t(2, 32)
    x[4] = np.abs(x[4])
    x[5] = -np.abs(x[5])
    x[6] = 0.0
    x[7] = -1.75
    x[8, 11] = 40 * np.abs(x[8]).max()
    x[9, 31] = -40 * np.abs(x[9]).max()
    x[10] = np.arange(32) / 32 - 0.5  # many ties
    x[11] = np.where(np.arange(32) % 2, 1.0, -1.0)
    x[12] = rng.standard_normal(32) * 2e-6  # scales that are subnormal halves
    x[13] = rng.uniform(-65504, 65504, 32)
    return x.astype(np.float32)


def main():
    x = numbers(np.random.default_rng(20240301))
    print("/* Made by tools/make-encode-vectors.py with gguf %s; not edited by hand. */" % version("gguf"))
    print("#include <stdint.h>\n\nstatic const uint32_t vec_numbers[] = {")
    rows(x.reshape(-1).view(np.uint32), "0x%08x", 10)
    print("};")
    for name in TYPES:
        raw = gguf.quants.quantize(x, gguf.GGMLQuantizationType[name]).view(np.uint8).reshape(-1)
        print("static const uint8_t vec_%s[] = {" % name.lower())
        rows(raw, "%d", 24)
        print("};")


main()

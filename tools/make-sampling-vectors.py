#!/usr/bin/env python3
"""tools/make-sampling-vectors.py >tests/sample/sampling_vectors.h: what transformers' warpers keep of rows of logits.

Needs torch and transformers. Rows where a cut comes too near to a token for float32 to be sure are left out.
"""
import random

import torch
from transformers import (MinPLogitsWarper, RepetitionPenaltyLogitsProcessor, TopKLogitsWarper, TopPLogitsWarper,
                          TypicalLogitsWarper)

N = 24
MARGIN = 1e-4
random.seed(8)
torch.manual_seed(8)


def kept(warper, row):
    return [not x.isinf().item() for x in warper(None, row[None].clone())[0]]


def near(make, row, at):
    """Would a slightly other parameter keep others?"""
    return any(kept(make(at + d), row) != kept(make(at), row) for d in (-MARGIN, MARGIN))


def cut_cases():
    makers = {"typical": TypicalLogitsWarper, "top_p": TopPLogitsWarper, "min_p": MinPLogitsWarper}
    for name, make in makers.items():
        n = 0
        while n < 20:
            row = torch.randn(N) * random.choice([0.3, 1, 3, 6])
            at = round(random.uniform(0.02, 0.98), 3)
            if near(make, row, at):
                continue
            yield name, at, row, kept(make(at), row)
            n += 1
    for k in (1, 2, 5, 23, 24, 100):
        row = torch.randn(N) * 2
        yield "top_k", k, row, kept(TopKLogitsWarper(k), row)


def number(x):
    return f"{float(x):.9g}" + ("f" if "." in f"{float(x):.9g}" or "e" in f"{float(x):.9g}" else ".0f")


def numbers(row):
    return ", ".join(number(x) for x in row)


print("/* Made by tools/make-sampling-vectors.py from transformers; never edited. */")
print(f"enum {{ VECTOR_N = {N} }};\n")
print("static const struct cut_case {\n    tg_sampling params;\n    float row[VECTOR_N];\n    const char *kept;\n} cut_cases[] = {")
for name, at, row, keep in cut_cases():
    value = str(at) if name == "top_k" else number(at)
    rest = "" if name == "top_p" else ", .top_p = 1"
    print(f"    {{{{.temp = 100, .{name} = {value}{rest}}},\n     {{{numbers(row)}}},\n     \"{''.join('01'[k] for k in keep)}\"}},")
print("};\n")
print("static const struct repeat_case {\n    float repeat;\n    int n;\n    int ids[12];\n    float row[VECTOR_N], want[VECTOR_N];\n} repeat_cases[] = {")
for penalty in (1.1, 1.3, 2.0, 0.8):
    row = torch.randn(N) * 3
    ids = [random.randrange(N) for _ in range(12)]
    want = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([ids]), row[None].clone())[0]
    print(f"    {{{number(penalty)}, 12, {{{', '.join(map(str, ids))}}},\n     {{{numbers(row)}}},\n     {{{numbers(want)}}}}},")
print("};")

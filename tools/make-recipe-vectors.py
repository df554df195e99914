#!/usr/bin/env python3
"""Writes tests/convert/recipe_vectors.h: the types that llama.cpp's llama-quantize gives the tensors of small models
of several shapes. Needs numpy, gguf (PyPI) and a llama-quantize.

    tools/make-recipe-vectors.py PATH/llama-quantize > tests/convert/recipe_vectors.h
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import gguf
import numpy as np

TYPES = ["F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S", "IQ4_NL",
         "Q4_1", "Q4_0", "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K"]

# layers, embedding, feed-forward, heads, key-value heads, experts, tied
MODELS = [(24, 256, 256, 4, 1, 0, True), (19, 256, 512, 4, 4, 0, False), (6, 96, 320, 4, 2, 0, True),
          (80, 256, 256, 8, 1, 0, False), (17, 256, 256, 4, 2, 8, False), (9, 256, 256, 4, 4, 4, True)]


def write_model(path, model):
    n_layer, n_embd, n_ff, n_head, n_head_kv, n_expert, tied = model
    w = gguf.GGUFWriter(path, "llama")
    w.add_block_count(n_layer)
    w.add_embedding_length(n_embd)
    w.add_feed_forward_length(n_ff)
    w.add_head_count(n_head)
    w.add_head_count_kv(n_head_kv)
    w.add_context_length(64)
    w.add_layer_norm_rms_eps(1e-5)
    if n_expert:
        w.add_expert_count(n_expert)
        w.add_expert_used_count(2)
    w.add_tokenizer_model("no_vocab")
    w.add_vocab_size(32)
    n_kv = n_embd // n_head * n_head_kv
    layer = {"attn_norm": (n_embd,), "attn_q": (n_embd, n_embd), "attn_k": (n_kv, n_embd), "attn_v": (n_kv, n_embd),
             "attn_output": (n_embd, n_embd), "ffn_norm": (n_embd,)}
    e = (n_expert,) if n_expert else ()
    exps = "_exps" if n_expert else ""
    layer |= {"ffn_gate" + exps: (*e, n_ff, n_embd), "ffn_up" + exps: (*e, n_ff, n_embd),
              "ffn_down" + exps: (*e, n_embd, n_ff)}
    if n_expert:
        layer["ffn_gate_inp"] = (n_expert, n_embd)
    shapes = {"token_embd": (32, n_embd), "output_norm": (n_embd,)}
    if not tied:
        shapes["output"] = (32, n_embd)
    shapes |= {f"blk.{i}.{name}": shape for i in range(n_layer) for name, shape in layer.items()}
    for name, shape in shapes.items():
        w.add_tensor(name + ".weight", np.zeros(shape, np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    print("/* Made by tools/make-recipe-vectors.py; not edited by hand. */")
    print("static const struct {\n    int n_layer, n_embd, n_ff, n_head, n_head_kv, n_expert;\n    bool tied;")
    print("    const char *mixture;\n    const char *types; /* of the tensors that are no vectors, layer by layer */")
    print("} vec_recipes[] = {")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for model in MODELS:
            write_model(folder / "in.gguf", model)
            for name in TYPES:
                subprocess.run([sys.argv[1], folder / "in.gguf", folder / "out.gguf", name, "2"], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                tensors = {t.name: t.tensor_type.name for t in gguf.GGUFReader(folder / "out.gguf").tensors
                           if len([d for d in t.shape if d > 1]) > 1}
                key = lambda n: (int(m[1]) if (m := re.match(r"blk\.(\d+)", n)) else -1, n)
                runs, last = [], None
                for n in sorted(tensors, key=key):
                    if runs and runs[-1][0] == tensors[n]:
                        runs[-1][1] += 1
                    else:
                        runs.append([tensors[n], 1])
                text = " ".join(f"{t}*{k}" if k > 1 else t for t, k in runs)
                print("    {%d, %d, %d, %d, %d, %d, %s, \"%s\"," % (*model[:6], str(model[6]).lower(), name))
                line = []
                for word in text.split():
                    if sum(map(len, line)) + len(line) + len(word) > 100:
                        print('     "%s "' % " ".join(line))
                        line = []
                    line.append(word)
                print('     "%s"},' % " ".join(line))
    print("};")


main()

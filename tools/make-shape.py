#!/usr/bin/env python3
"""Writes a GGUF of GPT-2 124M's shape with random weights: for measuring speed where real weights cannot be
had. Needs numpy and gguf (PyPI).

    tools/make-shape.py build/models/gpt2-f32.gguf F32
    tools/make-shape.py build/models/gpt2-q4_k.gguf Q4_K

Of types that the package cannot encode the blocks are random, with scales that make numbers of the same size.
"""
import argparse

import gguf
import numpy as np

N_LAYER, N_EMBD, N_HEAD, N_FF, N_CTX, N_VOCAB = 12, 768, 12, 3072, 1024, 50257
# Where blocks have their scale (a half) and, with some, what multiplies minima.
SCALES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,),
          "IQ4_XS": (0,)}
ENCODED = ["F32", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4"]


def byte_letters():
    """The letters that GPT-2's vocabulary writes bytes with."""
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    rest = [b for b in range(256) if b not in plain]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(len(rest))]


def vocabulary():
    letters = byte_letters()
    pairs = [a + b for a in letters for b in letters]
    tokens = letters + pairs[: N_VOCAB - 1 - len(letters)] + ["<|endoftext|>"]
    merges = [f"{t[0]} {t[1]}" for t in tokens[len(letters):-1]]
    return tokens, merges


def tensors():
    """Name, shape and spread; norms are ones with zero bias."""
    yield "token_embd", (N_VOCAB, N_EMBD), 0.02
    yield "position_embd", (N_CTX, N_EMBD), 0.01
    for i in range(N_LAYER):
        for name, n_out, n_in in (("attn_qkv", 3 * N_EMBD, N_EMBD), ("attn_output", N_EMBD, N_EMBD),
                                  ("ffn_up", N_FF, N_EMBD), ("ffn_down", N_EMBD, N_FF)):
            yield f"blk.{i}.{name}", (n_out, n_in), 0.02
        yield f"blk.{i}.attn_norm", (N_EMBD,), None
        yield f"blk.{i}.ffn_norm", (N_EMBD,), None
    yield "output_norm", (N_EMBD,), None


def random_blocks(rng, kind, n, spread):
    """n numbers of about that spread, their mean about 0."""
    columns, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (n // columns, block_bytes), dtype=np.uint8)
    places = SCALES[kind.name]

    def scaled(blocks, *scales):
        for at, x in zip(places, scales):
            blocks[:, at : at + 2] = np.frombuffer(np.float16(x).tobytes(), np.uint8)
        return gguf.quants.dequantize(blocks, kind)

    sample = raw[:256].copy()
    scales = [1.0] if len(places) == 1 else [1.0, scaled(sample, 1, 0).mean() / -scaled(sample, 0, 1).mean()]
    scaled(raw, *(spread / scaled(sample, *scales).std() * np.array(scales)))
    return raw


def encoded(rng, kind, data):
    if kind.name in SCALES:
        return random_blocks(rng, kind, data.size, data.std()).reshape(data.shape[0], -1)
    return gguf.quants.quantize(data, kind)


def write(path, type_name):
    rng = np.random.default_rng(1)
    kind = gguf.GGMLQuantizationType[type_name]
    out = gguf.GGUFWriter(path, "gpt2")
    out.add_file_type(gguf.LlamaFileType.ALL_F32 if type_name == "F32" else gguf.LlamaFileType.MOSTLY_Q8_0)
    out.add_name("random weights of GPT-2 124M's shape")
    out.add_context_length(N_CTX)
    out.add_embedding_length(N_EMBD)
    out.add_block_count(N_LAYER)
    out.add_feed_forward_length(N_FF)
    out.add_head_count(N_HEAD)
    out.add_layer_norm_eps(1e-5)
    tokens, merges = vocabulary()
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types([gguf.TokenType.NORMAL] * (N_VOCAB - 1) + [gguf.TokenType.CONTROL])
    out.add_token_merges(merges)
    out.add_bos_token_id(N_VOCAB - 1)
    out.add_eos_token_id(N_VOCAB - 1)

    def matrix(name, data):
        if type_name == "F32" or data.ndim == 1 or name.startswith("position"):
            out.add_tensor(name, data)
        else:
            out.add_tensor(name, encoded(rng, kind, data), raw_dtype=kind)

    for name, shape, spread in tensors():
        if spread is None:
            matrix(f"{name}.weight", np.ones(shape, np.float32))
            matrix(f"{name}.bias", np.zeros(shape, np.float32))
            continue
        data = (spread * rng.standard_normal(shape)).astype(np.float32)
        matrix(f"{name}.weight", data)
        if name.startswith("blk."):
            matrix(f"{name}.bias", np.zeros(shape[0], np.float32))
        if name == "token_embd":
            matrix("output.weight", data)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("type", choices=ENCODED + list(SCALES))
    args = parser.parse_args()
    write(args.path, args.type)

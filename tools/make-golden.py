#!/usr/bin/env python3
"""Writes tests/golden: tiny random models and the logits that they must give.

    tools/make-golden.py [NAME...]      all, or only those of these names ("qwen2-old", "gguf/qwen2")

Every model is saved as a Hugging Face folder, read back by transformers in float64 with eager attention,
and asked for the logits of random ids. Some also become GGUF files, whose logits are those of the
dequantised weights. cases.txt lists them for tests/model/test_golden.c, a line each:

    <model> <ids.npy> <logits.npy> <stride> <float|quant>

where the logits are those of the last position and of every stride-th before it, ascending. The same
versions give the same files; to add a case, add a line to a table in golden_models.py and run this again.
Needs numpy, torch, transformers, safetensors and gguf from PyPI; the files were made by torch 2.15.0,
transformers 5.24.0 and gguf 0.19.0.
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile
import zlib

import gguf
import numpy as np
import safetensors.torch
import torch
import transformers
from torch.overrides import TorchFunctionMode
from transformers import AutoConfig, AutoModelForCausalLM

import gguf_convert
from golden_models import FLOATS, FOLDERS, GGUF_STRIDE, GGUF_TOKENS, GGUFS, NULL

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"


# ---- float64 all the way -----------------------------------------------------------------------------

class Float64(TorchFunctionMode):
    """Within it nothing of a model in float64 becomes float32.

    transformers takes norms, softmax and routers in float32 whatever the model's type; those requests are
    overruled. What is float32 before it meets the model stays: inverse frequencies and position times
    frequency are float32 by definition, of which cosine and sine are taken in float64. Where published
    models run in bfloat16 they round what is not rounded here: a Gemma's embedding scale sqrt(n_embd), the
    scores of routers, all norms.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        kwargs = kwargs or {}
        if first is not None and first.dtype == torch.float64:
            if func is torch.Tensor.float:
                return first
            args = [torch.float64 if a is torch.float32 else a for a in args]
            kwargs = {k: torch.float64 if v is torch.float32 else v for k, v in kwargs.items()}
        if func in (torch.Tensor.cos, torch.Tensor.sin):
            args = (first.double(),)
        return func(*args, **kwargs)


def logits_of(model, ids, **more):
    with torch.no_grad():
        return model(torch.from_numpy(ids.astype(np.int64))[None], **more)


def reference(model, ids):
    with Float64():
        out = logits_of(model, ids, output_attentions=True)
    assert out.logits.dtype == torch.float64
    logits = out.logits[0]
    peak = torch.stack([a[0, :, 1:].amax(-1).mean() for a in out.attentions]).mean()
    print(f"  largest |logit| {logits.abs().max():.1f}, mean largest attention weight {peak:.2f}")
    return logits.numpy().astype(np.float32)


def check_precision_only(folder, ids, logits):
    """What Float64 changes is no more than float32 rounds."""
    plain = logits_of(read_folder(folder, torch.float32), ids).logits[0].numpy()
    error = np.abs(plain - logits).max() / max(1, np.abs(logits).max())
    print(f"  float32 as transformers has it: {error:.1e} away")
    assert error < 2e-5, error


# ---- weights ---------------------------------------------------------------------------------------

def random_weight(name, shape, config, rng):
    """Scaled so that attention is peaked and logits reach about 10; no norm or bias is 1 or 0."""
    w = torch.randn(shape, generator=rng)
    plus_one = 1 if config.model_type.startswith("gemma") else 0  # what its norms add to their weights
    role = re.sub(r"[._](weight|bias)$", "", name).split(".")[-1]
    if name.endswith("bias"):
        return 0.3 * w
    if name.endswith("sinks"):
        return 2 * w
    if len(shape) == 1:
        return (1 + 0.3 * w) * (1.7 if role in ("q_norm", "k_norm") else 1) - plus_one
    if role in ("wte", "wpe", "embed_tokens", "embed_positions", "embed_in"):
        return w * (3 / shape[1] ** 0.5 if config.tie_word_embeddings else 1)
    in_by_out = (config.model_type == "gpt2" and name.endswith(gguf_convert.CONV1D)
                 or config.model_type == "gpt_oss" and len(shape) == 3)
    n_in = shape[-2] if in_by_out else shape[-1]
    w /= n_in ** 0.5
    # what becomes queries and keys
    if role == "c_attn":
        w[:, : 2 * n_in] *= 2
    if role == "qkv_proj":
        w[:-config.num_key_value_heads * (n_in // config.num_attention_heads)] *= 2
    if role == "query_key_value":
        w.view(config.num_attention_heads, 3, -1, n_in)[:, :2] *= 2
    if len(shape) == 3 and config.model_type == "gpt_oss":  # so that many values meet the limit of SwiGLU
        return w * (3.5 if role == "gate_up_proj" else 0.5)
    unscaled = config.model_type == "gpt_neo"
    return w * {"q_proj": 1 if unscaled else 2, "k_proj": 1 if unscaled else 2, "lm_head": 3,
                "router": 2, "gate": 2}.get(role, 1)


def text_config(folder):
    config = AutoConfig.from_pretrained(folder)
    return getattr(config, "text_config", config)


def random_weights(name, folder):
    config = text_config(folder)
    config.__dict__.pop("quantization_config", None)
    rng = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    model = AutoModelForCausalLM.from_config(config)
    weights = {k: random_weight(k, w.shape, config, rng) for k, w in model.state_dict().items()
               if not (config.tie_word_embeddings and k == "lm_head.weight")}
    model.load_state_dict(weights, strict=False)
    model.tie_weights()
    with tempfile.TemporaryDirectory() as scratch:  # transformers knows the names that files have
        model.save_pretrained(scratch)
        saved = safetensors.torch.load_file(pathlib.Path(scratch) / "model.safetensors")
    return {k: saved.pop(k) for k in weights if k in saved} | saved


def in_type(weights, stored):
    """Rounds to the stored type; "mixed" takes the three in turn, and norms in float32; "any" is F32 that
    all three can hold."""
    kinds = dict(F32=torch.float32, F16=torch.float16, BF16=torch.bfloat16)
    if stored == "any":
        return {k: w.half().bfloat16().float() for k, w in weights.items()}
    if stored != "mixed":
        return {k: w.to(kinds[stored]) for k, w in weights.items()}
    order = list(kinds.values())
    return {k: w if w.ndim == 1 else w.to(order[i % 3]) for i, (k, w) in enumerate(weights.items())}


# ---- files -----------------------------------------------------------------------------------------

def byte_characters():
    """The characters that spell bytes in a byte-level vocabulary, common ones first."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    spelling = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
    common = b" abcdefghijklmnopqrstuvwxyz.\n"
    return [spelling[b] for b in [*common, *(b for b in range(256) if b not in common)]]


def vocabulary(n_vocab):
    """<|endoftext|>, two merges, and as many bytes as fit."""
    tokens = ["<|endoftext|>", *byte_characters()[: n_vocab - 3], "th", "the"]
    return {t: i for i, t in enumerate(tokens)}, [["t", "h"], ["th", "e"]]


def write_tokenizer(folder, n_vocab, as_merges):
    vocab, merges = vocabulary(n_vocab)
    if as_merges:
        (folder / "vocab.json").write_text(json.dumps(vocab, separators=(",", ":")) + "\n")
        (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
        return
    level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
    end = dict(id=0, content="<|endoftext|>", single_word=False, lstrip=False, rstrip=False,
               normalized=False, special=True)
    bpe = dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None,
               end_of_word_suffix=None, fuse_unk=False, byte_fallback=False, ignore_merges=False,
               vocab=vocab, merges=merges)
    text = json.dumps(dict(version="1.0", truncation=None, padding=None, added_tokens=[end],
                           normalizer=None, pre_tokenizer=level, post_processor=None, decoder=level,
                           model=bpe), separators=(",", ":"))
    (folder / "tokenizer.json").write_text(text + "\n")


def write_shards(folder, weights):
    names = sorted(weights)
    parts = [names[0::2], names[1::2]]
    index = {}
    for i, part in enumerate(parts, 1):
        file = f"model-{i:05}-of-{len(parts):05}.safetensors"
        safetensors.torch.save_file({k: weights[k] for k in part}, folder / file, {"format": "pt"})
        index.update({k: file for k in part})
    total = sum(w.numel() * w.element_size() for w in weights.values())
    text = json.dumps(dict(metadata=dict(total_size=total), weight_map=index), indent=1, sort_keys=True)
    (folder / "model.safetensors.index.json").write_text(text + "\n")


def mxfp4_parts(name, w):
    """Experts [n_expert][n_in][n_out] as gpt-oss is released: [n_expert][n_out][n_in / 32][16] bytes, of
    which byte k holds code 2k in its low half and 2k + 1 in its high one, and the blocks' scales."""
    if w.ndim != 3 or ".experts." not in name:
        return [(name, w)]
    rows = np.ascontiguousarray(w.float().numpy().swapaxes(1, 2))
    blocks = gguf.quants.quantize(rows, gguf.GGMLQuantizationType.MXFP4).reshape(*rows.shape[:2], -1, 17)
    codes = np.concatenate([blocks[..., 1:] & 15, blocks[..., 1:] >> 4], -1)
    return [(f"{name}_blocks", torch.from_numpy(codes[..., 0::2] | codes[..., 1::2] << 4)),
            (f"{name}_scales", torch.from_numpy(np.ascontiguousarray(blocks[..., 0])))]


def written(spec):
    """What config.json says: nothing for None, null for NULL."""
    if not isinstance(spec, dict):
        return None if spec == NULL else spec
    return {k: written(v) for k, v in spec.items() if v is not None}


def write_config(folder, spec):
    folder.mkdir(parents=True)
    config = written(spec)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def write_weights(folder, spec, weights, how):
    if "bare" in how:  # the names of a checkpoint that was saved without its head's class
        weights = {re.sub("^(transformer|model)\\.", "", k): w for k, w in weights.items()}
    if "masks" in how:  # buffers of old checkpoints, which nobody needs any more
        n = 4
        mask, least = torch.ones(1, 1, n, n).tril(), torch.tensor(-1e4)
        weights = weights | {
            "gpt2": {"h.0.attn.bias": mask, "h.0.attn.masked_bias": least},
            "gpt_neo": {"transformer.h.0.attn.attention.bias": mask.byte(),
                        "transformer.h.0.attn.attention.masked_bias": least},
            "gptj": {"transformer.h.0.attn.bias": mask.bool(), "transformer.h.0.attn.masked_bias": least},
            "gpt_neox": {"gpt_neox.layers.0.attention.bias": mask.bool(),
                         "gpt_neox.layers.0.attention.masked_bias": least,
                         "gpt_neox.layers.0.attention.rotary_emb.inv_freq": torch.ones(n)},
            "llama": {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(n)},
        }[spec["model_type"]]
    if "nested" in how:
        weights = {f"language_model.{k}": w for k, w in weights.items()} | {
            "vision_tower.vision_model.embeddings.patch_embedding.weight": torch.ones(2, 3, 4, 4),
            "multi_modal_projector.mm_input_projection_weight": torch.ones(2, 2)}
    if "mxfp4" in how:
        weights = {k: part for name, w in weights.items() for k, part in mxfp4_parts(name, w)}
    if "shards" in how:
        write_shards(folder, weights)
    else:
        safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})


def n_vocab(spec):
    return spec.get("text_config", spec)["vocab_size"]


def write_folder(name, folder, spec, stored, how):
    write_config(folder, spec)
    write_tokenizer(folder, n_vocab(spec), "merges.txt" in how)
    write_weights(folder, spec, in_type(random_weights(name, folder), stored), how)


def read_folder(folder, dtype=torch.float64):
    config = text_config(folder)
    if hasattr(config, "quantization_config"):
        config.quantization_config["dequantize"] = True
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, config=config, attn_implementation="eager",
        experts_implementation="eager", key_mapping={r"^language_model\.": ""}, output_loading_info=True)
    assert not info["missing_keys"], info
    return model.eval()


def random_ids(n_tokens, n_vocab):
    rng = np.random.default_rng(zlib.crc32(f"{n_tokens} of {n_vocab}".encode()))
    return rng.integers(0, n_vocab, n_tokens).astype(np.int32)


def ids_file(n_tokens, spec):
    """Models with as many tokens share their ids."""
    return f"ids/{n_tokens}x{n_vocab(spec)}.npy"


# ---- types that the gguf package decodes only ---------------------------------------------------------

# Where in a block lies the scale (a half) and, with some, what is subtracted per unit of the sub-block's
# minimum; and in units of the scale, the value of that which makes the numbers' mean about 0.
SCALES = {"Q2_K": (80, 82, 1.5), "Q3_K": (108, None, 0), "Q4_K": (0, 2, 7.5), "Q5_K": (0, 2, 15.5),
          "Q6_K": (208, None, 0), "IQ4_NL": (0, None, 0), "IQ4_XS": (0, None, 0)}


def encoder(name):
    """As gguf_convert.encoded; of those types random blocks, which spread as widely as the weights do: one
    random weight is as good as another, and the reference is what the blocks decode to."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))

    def encode(w, t):
        if t.name not in SCALES:
            return gguf_convert.encoded(w, t)
        block, block_bytes = gguf.GGML_QUANT_SIZES[t]
        raw = rng.integers(0, 256, (w.size // block, block_bytes), dtype=np.uint8)
        scale_at, minimum_at, minimum = SCALES[t.name]

        def decode(scale):
            for at, value in ((scale_at, scale), (minimum_at, scale * minimum)):
                if at is not None:
                    raw[:, at : at + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
            return gguf.quants.dequantize(raw, t)

        unit = 2.0 ** -10
        # Blocks, and sub-blocks with minima, have means of their own: products of such rows are larger.
        decode(w.std() / decode(unit).std() * unit * (0.6 if minimum_at is None else 0.35))
        return raw.reshape(*w.shape[:-1], -1)

    return encode


# ---- cases -----------------------------------------------------------------------------------------

def make_folder(name):
    spec, stored, n_tokens, stride, how = FOLDERS[name]
    print(name)
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    write_folder(name, folder, spec, stored, how)
    ids = random_ids(n_tokens, n_vocab(spec))
    logits = reference(read_folder(folder), ids)
    check_precision_only(folder, ids, logits)
    np.save(OUT / ids_file(n_tokens, spec), ids)
    np.save(folder / "logits.npy", logits[(n_tokens - 1) % stride :: stride])


def gguf_files(name, t):
    """Of a model in a type: the file, its logits, and how exact they are. Float types share one reference."""
    kind = "float" if t in FLOATS else "quant"
    return (f"gguf/{name}.{t.lower()}.gguf",
            f"gguf/{name}.{kind if t in FLOATS else t.lower()}.logits.npy", kind)


def make_ggufs(name):
    spec, types = GGUFS[name]
    ids = random_ids(GGUF_TOKENS, n_vocab(spec))
    np.save(OUT / ids_file(GGUF_TOKENS, spec), ids)
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "model"
        write_folder(name, source, spec, "any", [])
        exact = reference(read_folder(source), ids)
        check_precision_only(source, ids, exact)
        for t in types:
            print(name, t)
            file, out, kind = gguf_files(name, t)
            title = name.replace("phi3", "phi 3")  # llama.cpp wants special tokens of what is called phi3
            gguf_convert.convert(source, OUT / file, t, name=f"golden {title}", license="mit",
                                 encode=encoder(file))
            logits = reference(gguf_convert.load(OUT / file, torch.float64), ids)
            if kind == "float":
                assert np.abs(logits - exact).max() < 2e-6 * np.abs(exact).max(), t
                logits = exact
            np.save(OUT / out, logits[(len(ids) - 1) % GGUF_STRIDE :: GGUF_STRIDE])


def write_cases():
    lines = []
    for name, (spec, _, n_tokens, stride, how) in FOLDERS.items():
        kind = "quant" if "mxfp4" in how else "float"
        lines.append(f"{name} {ids_file(n_tokens, spec)} {name}/logits.npy {stride} {kind}")
    for name, (spec, types) in GGUFS.items():
        for file, logits, kind in (gguf_files(name, t) for t in types):
            lines.append(f"{file} {ids_file(GGUF_TOKENS, spec)} {logits} {GGUF_STRIDE} {kind}")
    (OUT / "cases.txt").write_text("".join(line + "\n" for line in lines))


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    wanted = sys.argv[1:]
    if not wanted:
        shutil.rmtree(OUT, ignore_errors=True)
    for part in ("ids", "gguf"):
        (OUT / part).mkdir(parents=True, exist_ok=True)
    for name in FOLDERS:
        if not wanted or name in wanted:
            make_folder(name)
    for name in GGUFS:
        if not wanted or f"gguf/{name}" in wanted:
            make_ggufs(name)
    write_cases()


main()

"""The catalogue's table of limits: each at the limit, where it is accepted, and one past it."""
import json

from form_kit import CASES, LOGITS, Case, both, change, field, more, pair, put_file
from model_files import (GGUF_PAIRS, TOKENS, U8, U32, Gguf, Safetensors, Tensor, folder_tensors,
                         sharded_folder, small_folder, text, vocab_folder)

S, INDEX, G = "model.safetensors", "model.safetensors.index.json", "tokenizer.ggml."
MIB = 1 << 20


def limit(item, edit, at, past, wanted, **more):
    """edit makes one of a number, or of the first of several; `wanted` may say {n}."""
    numbers = [(n, True) for n in at] + [(n, False) for n in past]
    for n, good in numbers:
        CASES.append(Case(f"limit of {item}", str(n), "" if good else wanted.format(n=n), lambda d, n=n: edit(n)(d),
                          status=0 if good else 3, **more))


def folder(*args, **more):
    limit(*args, **{"base": small_folder, "name": "model", "json": 8 * MIB, **more})


def anything(out):
    return bool(out)


# ---- files -------------------------------------------------------------------------------------------------


def header(n):
    return change(S, lambda s: setattr(s, "spell", lambda h: text(json.dumps(h)).ljust(n)))


folder("a safetensors header", header, [10 ** 8], [10 ** 8 + 1], "length of the header .found {n}, allowed 1 to 100000000")


def padded(name, fill):
    """The file of this name, of n bytes; past the limit it is a hole, which must not be read."""
    def edit(n):
        def apply(f):
            if n > 64 * MIB:
                f[name] = n
            else:
                content = f[name] if isinstance(f[name], str) else json.dumps(f[name])
                f[name] = content + fill(n - len(content))
        return apply
    return edit


def spaces(n):
    return " " * n


for name, fill, base in (("config.json", spaces, small_folder), ("tokenizer.json", spaces, small_folder),
                         (INDEX, spaces, sharded_folder), ("vocab.json", spaces, vocab_folder),
                         ("merges.txt", lambda n: "#version".ljust(n), vocab_folder)):
    folder(name, padded(name, fill), [64 * MIB], [64 * MIB + 1],
           f"{name}: file too large .found {{n}} bytes, allowed 67108864", base=base)


def nested(n):
    """The value itself is within the header and the entry."""
    value = []
    for _ in range(n - 3):
        value = [value]
    return change(S, lambda s: s.header["model.norm.weight"].__setitem__("x", value))


folder("JSON nesting", nested, [64], [65], "JSON nested too deeply .allowed 64 levels")
def shards(n):
    """Of one tensor each, all but the first two; if they are too many, none is opened."""
    def edit(f):
        for i in range(n - 2):
            f[INDEX]["weight_map"][f"x{i}"] = f"x{i}.safetensors"
            if n <= 1024:
                f[f"x{i}.safetensors"] = Safetensors([Tensor(f"x{i}", (1,))])
    return edit


folder("shards", shards, [1024], [1025], "number of shards .found {n}, allowed 1024", base=sharded_folder,
       like=(small_folder, LOGITS))


# ---- GGUF --------------------------------------------------------------------------------------------------

limit("pairs", lambda n: lambda g: g.pairs.extend([f"x{i}", U8, 1] for i in range(n - len(g.pairs))), [65536], [65537],
      "number of pairs .found {n}, allowed 65536")
limit("tensors", lambda n: lambda g: g.tensors.extend(Tensor(f"x{i}", (1,), 24, b"\0") for i in range(n - len(g.tensors))),
      [65536], [65537], "number of tensors .found {n}, allowed 65536")
folder("tensors, safetensors", lambda n: put_file(S, Safetensors(folder_tensors() + [
    Tensor(f"x{i}", (0,)) for i in range(n - 11)])), [65536], [65537], "too many tensors .allowed 65536 in a model")
limit("a key", lambda n: pair("k" * n, U8, 1), [65535], [65536], "length of the key .found {n}, allowed 1 to 65535")
limit("a tensor's name", lambda n: more(Tensor("n" * n, (1,))), [64], [65], "length of a tensor's name .found {n}, allowed 1 to 64")
folder("a tensor's name, safetensors", lambda n: put_file(S, Safetensors(folder_tensors() + [Tensor("n" * n, (1,))])), [1024], [1025],
       "length of a tensor's name .found {n}, allowed 1 to 1024")
limit("dimensions", lambda n: more(Tensor("x", (1,) * n)), [4], [5], "number of dimensions .found {n}, allowed 1 to 4")
folder("dimensions, safetensors", lambda n: put_file(S, Safetensors(folder_tensors() + [Tensor("x", (1,) * n)])), [4], [5],
       "shape .found {n} numbers, allowed 0 to 4")
limit("general.alignment", lambda n: both(field(alignment=n), pair("general.alignment", U32, n)), [8, MIB], [4, 2 * MIB],
      "general.alignment .found {n}, allowed")
limit("bytes in one token", lambda n: lambda g: g.get(G + "tokens").__setitem__(24, "y" * n), [4096], [4097],
      "token 24 is too long .found {n} bytes, allowed 4096")
folder("bytes in one token, tokenizer.json", lambda n: lambda f: f["tokenizer.json"]["model"].__setitem__("vocab", {
    ("y" * n if i == 24 else t): i for i, t in enumerate(TOKENS)}), [4096], [4097],
       "token 24 is too long .found {n} bytes, allowed 4096")

# ---- sizes of a model ----------------------------------------------------------------------------------------


def sized(layers=1, embd=8, heads=1, dim=2, ff=4, ctx=64, vocab=len(TOKENS)):
    """All its weights are zero, and take no room on the disk."""
    wide, kind = heads * dim, "F16"
    shapes = {"token_embd": (vocab, embd), "output_norm": (embd,)}
    for i in range(layers):
        b = f"blk.{i}."
        shapes |= {b + "attn_norm": (embd,), b + "attn_q": (wide, embd), b + "attn_k": (wide, embd), b + "attn_v": (wide, embd),
                   b + "attn_output": (embd, wide), b + "ffn_norm": (embd,), b + "ffn_gate": (ff, embd), b + "ffn_up": (ff, embd),
                   b + "ffn_down": (embd, ff)}
    g = Gguf(GGUF_PAIRS, [Tensor(f"{name}.weight", dims, kind) for name, dims in shapes.items()])
    for key, v in (("block_count", layers), ("embedding_length", embd), ("attention.head_count", heads), ("context_length", ctx),
                   ("attention.head_count_kv", heads), ("attention.key_length", dim), ("attention.value_length", dim),
                   ("feed_forward_length", ff)):
        g.put(f"llama.{key}", U32, v)
    return g


def size(item, key, most, wanted):
    limit(item, lambda n: lambda _: sized(**{key: n}), [most], [most + 1], wanted, out=anything,
          command=("logits", "-p", "the cab", "--top", "1"))


size("layers", "layers", 512, "llama.block_count .found {n}, allowed 1 to 512")
size("heads", "heads", 1024, "llama.attention.head_count .found {n}, allowed 1 to 1024")
size("embedding", "embd", 65536, "llama.embedding_length .found {n}, allowed 1 to 65536")
size("feed-forward", "ff", MIB, "llama.feed_forward_length .found {n}, allowed 1 to 1048576")
size("context", "ctx", MIB, "llama.context_length .found {n}, allowed 1 to 1048576")
size("vocabulary", "vocab", 4 * MIB, "rows of the token embedding .found {n}, allowed 1 to 4194304")

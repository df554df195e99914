"""Small models described as data, and the files that a description comes to, right or wrong.

A description is what a format consists of, in the format's own order: Gguf has a head, pairs and tensors; Safetensors a
header and data; Folder files by name. small_gguf() and small_folder() make valid ones, of the same model; who wants
another file changes the description and saves it. Whatever the description leaves open (counts, offsets, padding,
lengths) follows from it; raw bytes may stand in the place of any part.
"""
import copy
import json
import os
import random
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}
GGML = dict(F32=0, F16=1, Q4_0=2, Q8_0=8, BF16=30)
WIDTHS = dict(F32=4, F16=2, BF16=2, F64=8, I64=8, I32=4, U8=1, BOOL=1)


class Raw(bytes):
    """Bytes that stand in the file as they are."""


def text(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def save(path, parts):
    """Writes bytes, and holes: a number is so many zeros, which take no room on the disk."""
    with open(path, "wb") as out:
        for part in parts:
            if isinstance(part, int):
                out.seek(part, os.SEEK_CUR)
            else:
                out.write(part)
        out.truncate()


def product(dims):
    n = 1
    for d in dims:
        n *= d
    return n


# ---- tensors --------------------------------------------------------------------------------------------


class Tensor:
    """dims as a safetensors file has them, the outermost first. What is None follows from the rest."""

    def __init__(self, name, dims, kind="F32", data=None, offset=None, n_dims=None):
        self.name, self.dims, self.kind, self.data = name, list(dims), kind, data
        self.offset, self.n_dims = offset, n_dims

    def bytes(self):
        """The data, or the number of its zeros."""
        return product(self.dims) * WIDTHS.get(self.kind, 4) if self.data is None else self.data

    def recode(self, kind):
        """The same numbers in another format: those of small models have seven bits."""
        numbers = struct.unpack(f"<{product(self.dims)}f", self.data)
        self.kind = kind
        self.data = (struct.pack(f"<{len(numbers)}e", *numbers) if kind == "F16" else
                     b"".join(struct.pack("<f", x)[2:] for x in numbers))


def numbers(dims, seed, near=0.0):
    """Floats that half precision and bfloat16 hold as well."""
    draw = random.Random(seed)
    return struct.pack(f"<{product(dims)}f", *(near + draw.randrange(-48, 49) / 64 for _ in range(product(dims))))


# ---- GGUF -----------------------------------------------------------------------------------------------


def value_bytes(kind, value):
    """kind is a value type; (ARRAY, element) for an array."""
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(kind, tuple):
        form = f"<{len(value)}{FORMS[kind[1]]}" if kind[1] in FORMS else None
        return struct.pack("<IQ", kind[1], len(value)) + (
            struct.pack(form, *value) if form else b"".join(value_bytes(kind[1], v) for v in value))
    if kind == STRING:
        return struct.pack("<Q", len(text(value))) + text(value)
    return struct.pack("<" + FORMS[kind], value)


class Gguf:
    def __init__(self, pairs, tensors):
        self.magic, self.version = b"GGUF", 3
        self.n_pairs = self.n_tensors = None  # to be claimed; None: as many as there are
        self.alignment = 32  # of offsets and data; the pair is another thing
        self.pairs = [list(p) for p in pairs]  # key, kind, value; or Raw
        self.tensors = list(tensors)
        self.order = None  # of the descriptions; the data stay in the tensors' order
        self.end_padding = False
        self.tail = b""  # behind the data
        self.cut = None  # where the file ends, from the front, or negative, from the end

    def index(self, key):
        return next((i for i, p in enumerate(self.pairs) if p[0] == key), None)

    def get(self, key):
        return self.pairs[self.index(key)][2]

    def put(self, key, kind, value):
        """In the place of the pair of that key, or as a new one."""
        i = self.index(key)
        if i is None:
            self.pairs.append([key, kind, value])
        else:
            self.pairs[i] = [key, kind, value]

    def drop(self, key):
        del self.pairs[self.index(key)]

    def tensor(self, name):
        return next(t for t in self.tensors if t.name == name)

    def pair_bytes(self, pair):
        if isinstance(pair, Raw):
            return bytes(pair)
        key, kind, value = pair
        key = bytes(key) if isinstance(key, Raw) else value_bytes(STRING, key)
        return key + struct.pack("<I", ARRAY if isinstance(kind, tuple) else kind) + value_bytes(kind, value)

    def info_bytes(self, t, offset):
        if isinstance(t, Raw):
            return bytes(t)
        name = bytes(t.name) if isinstance(t.name, Raw) else value_bytes(STRING, t.name)
        n_dims = len(t.dims) if t.n_dims is None else t.n_dims
        return (name + struct.pack(f"<I{len(t.dims)}Q", n_dims, *reversed(t.dims)) +
                struct.pack("<IQ", GGML.get(t.kind, t.kind) & 0xffffffff, offset if t.offset is None else t.offset))

    def parts(self):
        data, infos, at = [], [], 0
        for t in self.tensors:
            if at % self.alignment:
                data.append(bytes(-at % self.alignment))
                at += len(data[-1])
            infos.append(self.info_bytes(t, at))
            if not isinstance(t, Raw):
                data.append(t.bytes())
                at += data[-1] if isinstance(data[-1], int) else len(data[-1])
        infos = [infos[i] for i in self.order] if self.order else infos
        n_tensors = len(self.tensors) if self.n_tensors is None else self.n_tensors
        n_pairs = len(self.pairs) if self.n_pairs is None else self.n_pairs
        head = (self.magic + struct.pack("<IQQ", self.version, n_tensors, n_pairs) +
                b"".join(map(self.pair_bytes, self.pairs)) + b"".join(infos))
        if self.tensors:
            head += bytes(-len(head) % self.alignment)
        if self.end_padding:
            data.append(bytes(-at % self.alignment))
        return [head, *data, self.tail]

    def save(self, path):
        parts = self.parts()
        if self.cut is not None:
            parts = [b"".join(bytes(p) if isinstance(p, int) else p for p in parts)[:self.cut]]
        save(path, parts)


# ---- safetensors and folders ------------------------------------------------------------------------------


class Safetensors:
    def __init__(self, tensors):
        self.header, self.data, at = {}, [], 0
        for t in tensors:
            data = t.bytes()
            n = data if isinstance(data, int) else len(data)
            self.header[t.name] = {"dtype": t.kind, "shape": t.dims, "data_offsets": [at, at + n]}
            self.data.append(data)
            at += n
        self.spell = json.dumps  # the header's text from the header
        self.n_header = None  # to be claimed

    def n_data(self):
        return sum(d if isinstance(d, int) else len(d) for d in self.data)

    def parts(self):
        head = text(self.spell(self.header))
        return [struct.pack("<Q", len(head) if self.n_header is None else self.n_header), head, *self.data]

    def save(self, path):
        save(path, self.parts())


class Link(str):
    """A symbolic link to this."""


class Folder:
    """files: name to Safetensors, Link, bytes, text, a number of zeros, or what becomes JSON. A name may lead into a
    folder below."""

    def __init__(self, files):
        self.files = files
        self.open = ""  # what of it is opened, by name; "": the folder

    def __getitem__(self, name):
        return self.files[name]

    def __setitem__(self, name, value):
        self.files[name] = value

    def __delitem__(self, name):
        del self.files[name]

    def save(self, path):
        os.mkdir(path)
        for name, value in self.files.items():
            to = os.path.join(path, name)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if isinstance(value, Safetensors):
                value.save(to)
            elif isinstance(value, Link):
                os.symlink(value, to)
            elif isinstance(value, (str, bytes, int)):
                save(to, [value if isinstance(value, int) else text(value)])
            else:
                save(to, [text(json.dumps(value))])


# ---- the small model ----------------------------------------------------------------------------------------

LAYERS, EMBD, HEADS, HEADS_KV, FF, CTX = 1, 32, 4, 2, 48, 64
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# byte-level: the space is U+0120 there
TOKENS = ["<|endoftext|>", "\u0120", *LETTERS, ".", "\u010a", "\u0100", "th", "the"]
MERGES = [("t", "h"), ("th", "e")]
# SentencePiece's: text, score, type
PIECES = ([("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3)] + [(f"<0x{b:02X}>", 0, 6) for b in range(256)] +
          [(t, -i, 1) for i, t in enumerate(["\u2581", *LETTERS, ".", "th", "the"])])
# role: names in a GGUF and in a folder, shape
SHAPES = {
    "token_embd": ("model.embed_tokens", (len(TOKENS), EMBD)),
    "output_norm": ("model.norm", (EMBD,)),
    "blk.0.attn_norm": ("model.layers.0.input_layernorm", (EMBD,)),
    "blk.0.attn_q": ("model.layers.0.self_attn.q_proj", (EMBD, EMBD)),
    "blk.0.attn_k": ("model.layers.0.self_attn.k_proj", (EMBD * HEADS_KV // HEADS, EMBD)),
    "blk.0.attn_v": ("model.layers.0.self_attn.v_proj", (EMBD * HEADS_KV // HEADS, EMBD)),
    "blk.0.attn_output": ("model.layers.0.self_attn.o_proj", (EMBD, EMBD)),
    "blk.0.ffn_norm": ("model.layers.0.post_attention_layernorm", (EMBD,)),
    "blk.0.ffn_gate": ("model.layers.0.mlp.gate_proj", (FF, EMBD)),
    "blk.0.ffn_up": ("model.layers.0.mlp.up_proj", (FF, EMBD)),
    "blk.0.ffn_down": ("model.layers.0.mlp.down_proj", (EMBD, FF)),
}
GGUF_PAIRS = [
    ("general.architecture", STRING, "llama"),
    ("llama.block_count", U32, LAYERS),
    ("llama.context_length", U32, CTX),
    ("llama.embedding_length", U32, EMBD),
    ("llama.feed_forward_length", U32, FF),
    ("llama.attention.head_count", U32, HEADS),
    ("llama.attention.head_count_kv", U32, HEADS_KV),
    ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
    ("tokenizer.ggml.model", STRING, "gpt2"),
    ("tokenizer.ggml.pre", STRING, "gpt-2"),
    ("tokenizer.ggml.tokens", (ARRAY, STRING), TOKENS),
    ("tokenizer.ggml.token_type", (ARRAY, I32), [3] + [1] * (len(TOKENS) - 1)),
    ("tokenizer.ggml.merges", (ARRAY, STRING), [" ".join(m) for m in MERGES]),
    ("tokenizer.ggml.eos_token_id", U32, 0),
]
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": EMBD, "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS_KV, "intermediate_size": FF, "num_hidden_layers": LAYERS, "hidden_act": "silu",
    "rms_norm_eps": 1e-5, "max_position_embeddings": CTX, "rope_theta": 10000.0, "vocab_size": len(TOKENS),
    "tie_word_embeddings": True, "eos_token_id": 0,
}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None,
    "added_tokens": [{"id": 0, "content": TOKENS[0], "single_word": False, "lstrip": False, "rstrip": False,
                      "normalized": False, "special": True}],
    "normalizer": None, "pre_tokenizer": BYTE_LEVEL, "post_processor": None, "decoder": BYTE_LEVEL,
    "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
              "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
              "vocab": {t: i for i, t in enumerate(TOKENS)}, "merges": [list(m) for m in MERGES]},
}
WEIGHTS = {role: numbers(dims, role, 1.0 if "norm" in role else 0.0) for role, (_, dims) in SHAPES.items()}


def gguf_tensors():
    return [Tensor(f"{role}.weight", dims, data=WEIGHTS[role]) for role, (_, dims) in SHAPES.items()]


def folder_tensors():
    return [Tensor(f"{name}.weight", dims, data=WEIGHTS[role]) for role, (name, dims) in SHAPES.items()]


def small_gguf():
    return Gguf(copy.deepcopy(GGUF_PAIRS), gguf_tensors())


def pieces_gguf():
    """With SentencePiece's tokenizer."""
    g = small_gguf()
    tokens, scores, types = (list(column) for column in zip(*PIECES))
    for key in ("pre", "merges"):
        g.drop(f"tokenizer.ggml.{key}")
    g.put("tokenizer.ggml.model", STRING, "llama")
    g.put("tokenizer.ggml.tokens", (ARRAY, STRING), tokens)
    g.put("tokenizer.ggml.scores", (ARRAY, F32), scores)
    g.put("tokenizer.ggml.token_type", (ARRAY, I32), types)
    g.put("tokenizer.ggml.bos_token_id", U32, 1)
    g.put("tokenizer.ggml.eos_token_id", U32, 2)
    g.tensors[0] = Tensor("token_embd.weight", (len(tokens), EMBD), data=numbers((len(tokens), EMBD), "pieces"))
    return g


def small_folder():
    return Folder({"config.json": copy.deepcopy(CONFIG), "tokenizer.json": copy.deepcopy(TOKENIZER),
                   "model.safetensors": Safetensors(folder_tensors())})


def vocab_folder():
    """With vocab.json and merges.txt."""
    f = small_folder()
    del f["tokenizer.json"]
    f["tokenizer_config.json"] = {"tokenizer_class": "GPT2Tokenizer"}
    f["vocab.json"] = {t: i for i, t in enumerate(TOKENS)}
    f["merges.txt"] = "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in MERGES)
    return f


def pieces_folder():
    """With SentencePiece's tokenizer as a tokenizer.json has it."""
    f, n = small_folder(), len(PIECES)
    f["config.json"] |= {"vocab_size": n, "bos_token_id": 1, "eos_token_id": 2}
    added = f["tokenizer.json"]["added_tokens"][0]
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    f["tokenizer.json"] |= {
        "added_tokens": [added | {"id": i, "content": PIECES[i][0]} for i in range(3)],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, space]},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": [
            space | {"pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}}
    f["tokenizer.json"]["model"] |= {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>",
                                     "vocab": {t: i for i, (t, _, _) in enumerate(PIECES)}}
    f["model.safetensors"] = Safetensors([Tensor("model.embed_tokens.weight", (n, EMBD),
                                                 data=numbers((n, EMBD), "pieces")), *folder_tensors()[1:]])
    return f


def sharded_folder():
    """The same in two shards with an index."""
    f = small_folder()
    del f["model.safetensors"]
    tensors, names = folder_tensors(), [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    halves = [tensors[:4], tensors[4:]]
    for name, half in zip(names, halves):
        f[name] = Safetensors(half)
    f["model.safetensors.index.json"] = {
        "metadata": {"total_size": sum(len(t.data) for t in tensors)},
        "weight_map": {t.name: name for name, half in zip(names, halves) for t in half}}
    return f

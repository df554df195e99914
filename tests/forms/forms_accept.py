"""A01 to A23: unusual files that are valid. Where nothing else is said, the logits have the same bits as the base's."""
import json
import pathlib
from struct import pack, unpack_from

from form_kit import (CASES, INSPECT, LOGITS, TEXT, Case, architecture, both, change, field, lacks, member, more,
                      nothing, no_file, pair, put_file, tensor)
from model_files import (ARRAY, BOOL, EMBD, F64, FORMS, I8, I16, I32, I64, MERGES, STRING, TOKENS, U8, U16, U32, U64,
                         WEIGHTS, Folder, Link, Safetensors, Tensor, folder_tensors, sharded_folder,
                         small_folder, small_gguf, vocab_folder)

S, INDEX, J, CONFIG = "model.safetensors", "model.safetensors.index.json", "tokenizer.json", "config.json"
G = "tokenizer.ggml."
N = len(TOKENS)
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"


def accepted(row, *cases, **more):
    """Cases as (what, edit); a dictionary behind them has other fields."""
    for what, edit, *rest in cases:
        CASES.append(Case(row, what, edit=edit, **({"wanted": "", "status": 0} | more | (rest[0] if rest else {}))))


def folder(row, *cases, **more):
    accepted(row, *cases, **{"base": small_folder, "name": "model", **more})


def other_than(base, command=LOGITS):
    """The result must differ from that of this base."""
    return {"like": (base, command), "differs": True}


def holds(*wanted, lacks=()):
    def check(out):
        return all(w in out for w in wanted) and not any(w in out for w in lacks)
    return {"out": check}


# ---- GGUF -------------------------------------------------------------------------------------------------

ANY = [(k, 1) for k in FORMS] + [(STRING, "\xe4\0\n"), ((ARRAY, U8), [1, 2]), ((ARRAY, STRING), ["", "x"]), ((ARRAY, F64), []),
                                 ((ARRAY, BOOL), [0, 1])]
accepted(
    "A01",
    ("version 2", field(version=2)),
    *((f"an unknown key of type {kind}", pair("an.unknown:key ~", kind, value)) for kind, value in ANY),
    ("keys turned round", lambda g: g.pairs.reverse()),
    ("keys sorted", lambda g: g.pairs.sort(key=lambda p: p[0])),
    ("the alignment behind all", pair("general.alignment", U32, 32)),
    ("a split model of one part", both(pair("split.no", U16, 0), pair("split.count", U16, 1))))
WIDTHS = (U8, I8, U16, I16, I32, U64, I64)
KEYS = [p[0] for p in small_gguf().pairs if p[1] == U32]
accepted(
    "A02",
    *((f"{key} as type {kind}", lambda g, key=key, kind=kind: g.put(key, kind, g.get(key)))
      for i, key in enumerate(KEYS) for kind in (WIDTHS[i % 7], WIDTHS[(i + 3) % 7])),
    *((f"all as type {kind}", lambda g, kind=kind: [g.put(key, kind, g.get(key)) for key in KEYS] and None) for kind in WIDTHS),
    *((f"token types as type {kind}", lambda g, kind=kind: g.put(G + "token_type", (ARRAY, kind), g.get(G + "token_type")))
      for kind in (*WIDTHS, U32)),
    *((f"alignment as type {kind}", pair("general.alignment", kind, 32)) for kind in WIDTHS),
    ("a real as float64", lambda g: g.put("llama.attention.layer_norm_rms_epsilon", F64, unpack_from("<f", pack("<f", 1e-5))[0])),
    ("a real as integer", pair("llama.rope.freq_base", U32, 10000)))
accepted("A03", ("none, 32", nothing),
         *((f"alignment {a}", both(field(alignment=a), pair("general.alignment", U32, a)))
           for a in (8, 16, 32, 64, 4096, 1 << 20)))
accepted(
    "A04",
    ("no tensors", field(tensors=[]), holds(b'"n_tensors": 0')),
    ("no pairs", field(pairs=[]), holds(b'"architecture": null', b'"n_tensors": 11')),
    ("neither", field(pairs=[], tensors=[]), holds(b'"n_tensors": 0')),
    ("neither, version 2", field(pairs=[], tensors=[], version=2), holds(b'"n_tensors": 0')),
    ("another architecture", architecture("mamba"), holds(b'"architecture": "mamba"', b'"supported": false')),
    command=INSPECT)
ODD = more(Tensor("odd", (3,)))
accepted("A05", ("absent", ODD), ("present", both(ODD, field(end_padding=True))),
         ("present, alignment 4096", both(ODD, field(end_padding=True, alignment=4096), pair("general.alignment", U32, 4096))))
accepted("A06", ("turned round", field(order=list(range(10, -1, -1)))),
         ("mixed", field(order=[5, 2, 9, 0, 10, 1, 8, 3, 7, 4, 6])),
         ("holes between them", lambda g: [setattr(t, "offset", 7168 * i) for i, t in enumerate(g.tensors)] and
          [setattr(t, "data", t.data + bytes(7168 - len(t.data))) for t in g.tensors] and None))
ROPE = {f: Tensor(f"{f}.weight", (4,), data=pack("<4f", 1, 2, 3, 4)) for f in ("rope_freqs", "rope_factors_long",
                                                                              "rope_factors_short")}
ONES = Tensor("rope_freqs.weight", (4,), data=pack("<4f", 1, 1, 1, 1))
accepted(
    "A07",
    ("an attention mask", more(Tensor("blk.0.attn.bias", (1, 1, 64, 64)))),
    *((f"inverse frequencies, {kind}", more(Tensor("blk.0.attn_rot_embd.weight", (4,), kind, bytes(4 * size))))
      for kind, size in (("F32", 4), ("F16", 2), (28, 8))),
    ("a type that is not supported", more(Tensor("spare", (2, 8), 27, bytes(128)))),
    ("factors of one", more(ONES)),
    ("factors of rotation are applied", more(ROPE["rope_freqs"]), other_than(small_gguf)),
    ("no number is a factor", more(Tensor("rope_freqs.weight", (4,), data=pack("<4f", 1, 0, 1, 1))),
     dict(status=3, wanted="rotary factor 1 .found 0, allowed: finite, above 0")),
    ("factors of LongRoPE in a llama", more(ROPE["rope_factors_long"], ROPE["rope_factors_short"]),
     dict(status=3, wanted="factors of rotation are not supported in this architecture .found rope_factors_")))
folder(
    "A07",
    ("an attention mask of booleans", lambda f: put_file(S, Safetensors(folder_tensors() + [
        Tensor("model.layers.0.self_attn.bias", (1, 1, 8, 8), "BOOL")]))(f)),
    ("inverse frequencies", lambda f: put_file(S, Safetensors(folder_tensors() + [
        Tensor("model.layers.0.self_attn.rotary_emb.inv_freq", (4,), "F32", pack("<4f", 9, 9, 9, 9))]))(f)))
accepted("A08", *((f"{dims}", more(Tensor("nothing", dims))) for dims in ((0,), (0, 5), (3, 0, 2))),
         ("among the others", lambda g: g.tensors.insert(3, Tensor("nothing", (0, 8)))))
folder("A08",
       *((f"{dims}, {kind}", lambda f, d=dims, k=kind: put_file(S, Safetensors(folder_tensors() + [Tensor("x", d, k)]))(f))
         for dims in ((0,), (0, 5), (3, 0, 2), ()) for kind in ("F32", "I64", "BOOL")),
       ("nothing among the others", lambda f: put_file(S, Safetensors(
           folder_tensors()[:3] + [Tensor("x", (0, 2)), Tensor("y", ())] + folder_tensors()[3:]))(f)))

# ---- safetensors and folders --------------------------------------------------------------------------------


def spelled(function):
    return lambda f: setattr(f[S], "spell", lambda header: function(json.dumps(header).encode()))


folder("A09", *((f"{n} spaces behind", spelled(lambda h, n=n: h + b" " * n)) for n in (1, 8, 100000)),
       *((f"{n} spaces before", spelled(lambda h, n=n: b" " * n + h)) for n in (1, 8)),
       ("line breaks", spelled(lambda h: h.replace(b", ", b",\r\n\t") + b"\n")))
folder("A10", *((f"data {n} bytes past a multiple of 4", spelled(lambda h, n=n: h + b" " * ((n - len(h)) % 4)))
                for n in range(4)),
       ("a byte before all", lambda f: put_file(S, Safetensors([Tensor("x", (1,), "U8")] + folder_tensors()))(f)),
       ("float32 behind three of bfloat16", lambda f: put_file(S, Safetensors([Tensor("x", (3,), "BF16")] + folder_tensors()))(f)))


def metadata(value):
    return change(S, lambda s: s.header.__setitem__("__metadata__", value))


folder("A11", ("absent", nothing), ("empty", metadata({})), ("usual", metadata({"format": "pt"})),
       ("any keys", metadata({"": "", "\xe4\n": "\x1b[2J", "dtype": "F32", "__metadata__": "x" * 5000})),
       *((f"a field {v!r} that nobody knows", change(S, lambda s, v=v: s.header["model.norm.weight"].__setitem__("x", v)))
         for v in (1, None, "x", [[]], {"dtype": "I64"})))


def recoded(tensors, *kinds):
    for i, t in enumerate(tensors):
        t.recode(kinds[i % len(kinds)]) if kinds[i % len(kinds)] != "F32" else None
    return tensors


EXACT = ("logits", "-p", TEXT, "--all", "--format", "npy", "--precise")
MIXED = (("F16",), ("BF16",), ("F32", "F16"), ("F32", "F16", "BF16"), ("BF16", "F16"))
accepted("A12", *((" and ".join(k), lambda g, k=k: recoded(g.tensors, *k) and None) for k in MIXED), command=EXACT)
folder("A12", *((" and ".join(k), lambda f, k=k: put_file(S, Safetensors(recoded(folder_tensors(), *k)))(f)) for k in MIXED),
       command=EXACT)


def golden_gpt2():
    """Of tests/golden: its names begin with transformer."""
    data = (GOLDEN / "gpt2-tanh" / S).read_bytes()
    n, = unpack_from("<Q", data)
    tensors = [Tensor(name, e["shape"], e["dtype"], data[8 + n:][slice(*e["data_offsets"])])
               for name, e in json.loads(data[8:8 + n]).items() if name != "__metadata__"]
    files = {name: (GOLDEN / "gpt2-tanh" / name).read_bytes() for name in (CONFIG, J)}
    return Folder(files | {S: Safetensors(tensors)})


def names(function):
    return change(S, lambda s: setattr(s, "header", {function(k): v for k, v in s.header.items()}))


def bare(prefix):
    return lambda name: name.removeprefix(prefix)


def output(f):
    """The output's weights, which are those of the embedding, stand there twice."""
    put_file(S, Safetensors(folder_tensors() + [Tensor("lm_head.weight", (N, EMBD), data=WEIGHTS["token_embd"])]))(f)


folder("A13", ("gpt2 with transformer.", names(lambda n: n if n.startswith("transformer.") else f"transformer.{n}")),
       ("gpt2 without", names(bare("transformer."))), base=golden_gpt2)
folder("A13", ("llama without model.", names(bare("model."))),
       ("llama within a model that also sees", names(lambda n: f"language_model.{n}")),
       ("output tied and present", output),
       ("output not tied, and present", both(output, member(CONFIG, "tie_word_embeddings", False))))
accepted("A13", ("output present", more(Tensor("output.weight", (N, EMBD), data=WEIGHTS["token_embd"]))))
ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
SHARDS = dict(base=sharded_folder, like=(small_folder, LOGITS))
folder("A14", ("shards with an index", nothing), ("shards without one", no_file(INDEX)),
       ("a stray shard", put_file("model-00003-of-00003.safetensors", b"\xff" * 20)),
       ("a stray shard that has a tensor again", put_file("model-00003-of-00003.safetensors", Safetensors(folder_tensors()[:2]))),
       ("an index without total_size", lacks(INDEX, "metadata")),
       ("tensors that the index does not name", lambda f: f[TWO].header.__setitem__("x", f[TWO].header.pop("x", {
           "dtype": "U8", "shape": [0], "data_offsets": [f[TWO].n_data()] * 2}))),
       ("a shard named itself", field(open=ONE)), **SHARDS)
folder("A14", ("the file itself", field(open=S)), ("one file beside shards", lambda f: f.files.update(
    {k: v for k, v in sharded_folder().files.items() if k.startswith("model")})))
folder(
    "A15",
    *((f"rms_norm_eps spelled {text}", lambda f, text=text: put_file(CONFIG, json.dumps(f[CONFIG]).replace("1e-05", text))(f))
      for text in ("1e-5", "1E-05", "0.00001", "1.0e-05", "10e-6")),
    ("unknown keys", lambda f: f[CONFIG].update({"a": None, "b": [{}], "c": {"d": [1.5, True]}, "\xe4": "\u65e5\u672c", "": 0})),
    ("UTF-8 text", lambda f: put_file(CONFIG, json.dumps(f[CONFIG] | {"_name_or_path": "M\xf6dell \u65e5\u672c"},
                                                         ensure_ascii=False))(f)),
    ("a byte-order mark", lambda f: put_file(CONFIG, "\ufeff" + json.dumps(f[CONFIG]))(f)),
    ("a byte-order mark in tokenizer.json", lambda f: put_file(J, "\ufeff" + json.dumps(f[J]))(f)),
    ("line breaks of another system", lambda f: put_file(CONFIG, json.dumps(f[CONFIG], indent=2).replace("\n", "\r\n"))(f)),
    ("null where nothing is said", lambda f: f[CONFIG].update(rope_scaling=None, head_dim=None, sliding_window=None)),
    ("rope_theta as an integer", member(CONFIG, "rope_theta", 10000)))

# ---- tokenizers -----------------------------------------------------------------------------------------------

LINES = [f"{a} {b}" for a, b in MERGES]
folder("A16", ("texts in tokenizer.json", member(J, "model", "merges", LINES)), ("pairs in tokenizer.json", nothing),
       ("a version line in tokenizer.json", member(J, "model", "merges", ["#version: 0.2", *LINES])))
folder("A16", *((f"{text!r}", put_file("merges.txt", text)) for text in (
    "#version: 0.2\nt h\nth e\n", "t h\nth e\n", "t h\nth e", "#version: 0.2\r\nt h\r\nth e\r\n", "t h\r\nth e\r\n",
    "#version: 0.2\r\nt h\r\nth e")), base=vocab_folder, like=(small_folder, LOGITS))
LONG = [Tensor("token_embd.weight", (N + 7, EMBD), data=WEIGHTS["token_embd"] + pack("<f", 3.0) * (7 * EMBD))]
SAMPLE = ("generate", "-p", TEXT, "-n", "300", "-c", "512", "--ignore-eos", "--temp", "100", "--top-k", "0", "--top-p", "1",
          "--min-p", "0", "--seed", "1", "--json", "--logprobs", "0", "-q")


def sampled(out):
    """Of three hundred draws, all but even, none is without a text, and most of the others came."""
    ids = {t["id"] for t in json.loads(out)["choices"][0]["logprobs"]["content"]}
    return ids <= set(range(1, N)) - {24, 25} and len(ids) > 20


def shortened(g):
    """Two tokens lose their text."""
    tokens = g.get(G + "tokens")
    tokens[24] = tokens[25] = ""


def dropped(f):
    for t in (TOKENS[24], TOKENS[25]):
        f[J]["model"]["vocab"].pop(t)


accepted("A17", ("an empty text", shortened), ("an embedding longer than the vocabulary, and empty texts are not drawn",
         lambda g: shortened(g) or g.tensors.__setitem__(0, LONG[0]), dict(command=SAMPLE, out=sampled)))
folder("A17", ("a hole in the vocabulary", dropped),
       ("an embedding longer than the vocabulary, and holes are not drawn", lambda f: dropped(f) or put_file(S, Safetensors(
           [Tensor("model.embed_tokens.weight", (N + 7, EMBD), data=LONG[0].data)] + folder_tensors()[1:]))(f) or
        f[CONFIG].__setitem__("vocab_size", N + 7), dict(command=SAMPLE, out=sampled)))


def tokenize(*args):
    return ("tokenize", *args)


def token(i, text, kind=1):
    def edit(g):
        g.get(G + "tokens")[i] = text
        g.get(G + "token_type")[i] = kind
    return edit


accepted(
    "A18",
    ("outside the alphabet", token(24, "\u65e5\u672c \xfc"), dict(command=tokenize("--decode", "24"), out="\u65e5\u672c \xfc")),
    ("user-defined, found in a text", token(24, "\u65e5 \xfc", 4), dict(command=tokenize("--ids", "the\u65e5 \xfcb"), out="32 24 3\n")),
    ("a control token is plain text", token(24, "<x>", 3), dict(command=tokenize("--ids", "the<x>b"), out="32 25 3\n",
     wanted="2 bytes of the text cannot be expressed")),
    ("but for --special", token(24, "<x>", 3), dict(command=tokenize("--ids", "--special", "the<x>b"), out="32 24 3\n")))
ADDED = {"id": 24, "content": "\u65e5 \xfc", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": False}


def added(f):
    v = f[J]["model"]["vocab"]
    del v[TOKENS[24]]
    v[ADDED["content"]] = 24
    f[J]["added_tokens"].append(ADDED)


folder("A18", ("an added token", added, dict(command=tokenize("--ids", "the\u65e5 \xfcb"), out="32 24 3\n")),
       ("an added token, decoded", added, dict(command=tokenize("--decode", "32 24 3"), out="the\u65e5 \xfcb")))
EVIL = "\x1b[2J\x1b]0;x\x07{% for i in range(10**9) %}{{ raise_exception('x') }}{% endfor %}{{ ''.__class__ }}\r\n"
accepted(
    "A19",
    ("a hostile chat template", pair("tokenizer.chat_template", STRING, EVIL)),
    ("one of a megabyte", pair("tokenizer.chat_template", STRING, "{{" * (1 << 19))),
    *((f"{key} with terminal control, {how}", pair(key, STRING, EVIL), dict(command=command) | holds(b"2J", lacks=(b"\x1b", b"\r")))
      for key in ("general.name", "general.license")
      for how, command in (("text", ("inspect",)), ("JSON", INSPECT))),
    ("a tensor's name with terminal control", more(Tensor("x\xc2\x9b2J", (1,))),
     dict(command=("inspect", "--tensors")) | holds(b"2J", lacks=(b"\xc2\x9b",))))
folder("A19", *((f"a hostile {name}", put_file(name, content)) for name, content in (
    ("chat_template.jinja", EVIL), ("chat_template.json", {"chat_template": EVIL}), ("tokenizer_config.json", {"chat_template": EVIL}))))
NANS = pack("<2f", float("nan"), float("inf")) * (EMBD // 2)
accepted("A20", ("in a tensor that is not needed", more(Tensor("spare", (EMBD,), data=NANS))),
         ("in a norm, when the model is shown", tensor("output_norm.weight", data=NANS),
          dict(command=INSPECT) | holds(b'"supported": true')),
         ("in a norm, when a text is cut", tensor("output_norm.weight", data=NANS), dict(command=tokenize("--ids", "the"), out="32\n")),
         ("in a norm, when the model is run (R21)", tensor("output_norm.weight", data=NANS),
          dict(status=8, wanted="^tinygpt: error: .*position [0-9]+", command=("logits", "-p", TEXT), out="")))


def cached(f):
    """As the hub's cache has it: a snapshot of links to blobs."""
    files = {f"snapshots/0f/{name}": Link(f"../../blobs/{i}") for i, name in enumerate(f.files)}
    new = Folder(files | {f"blobs/{i}": v for i, v in enumerate(f.files.values())})
    new.open = "snapshots/0f"
    return new


BIG = (1 << 30) + 8  # numbers; as holes, they take no room
folder("A21", ("the hub's cache", cached), ("a path with spaces", nothing, dict(name="my model, (1)")),
       ("a name that is not ASCII", nothing, dict(name="M\xf6dell \u65e5\u672c")),
       ("above 4 GiB", lambda f: put_file(S, Safetensors([Tensor("x", (BIG,))] + folder_tensors()))(f)))
folder("A21", ("the hub's cache, in shards", cached), base=sharded_folder)
accepted("A21", ("a path with spaces", nothing, dict(name="my model, (1).gguf")),
         ("a name that is not ASCII", nothing, dict(name="M\xf6dell \u65e5\u672c.gguf")),
         ("a name that is not UTF-8", nothing, dict(name="M\udcf6dell.gguf")),
         ("above 4 GiB", lambda g: g.tensors.insert(0, Tensor("x", (BIG,)))))
WITHOUT = "1 byte of the text cannot be expressed in the vocabulary and is left out"
accepted(
    "A22",
    ("a byte without a token is left out", nothing, dict(command=tokenize("--ids", "the! cab"), out="32 1 4 2 3\n", wanted=WITHOUT)),
    ("the same when the model runs", nothing, dict(command=("logits", "-p", "the! cab\n", *LOGITS[3:]), like=(small_gguf, LOGITS),
                                                   wanted=WITHOUT)),
    ("one warning counts them", nothing, dict(command=tokenize("--ids", "!?a\xff%"), out="2\n", wanted="5 bytes of the text")))
folder("A22", ("the unknown token, where there is one", member(J, "model", "unk_token", TOKENS[0]),
               dict(command=tokenize("--ids", "the! cab"), out="32 0 1 4 2 3\n")),
       ("and without one it is left out", nothing, dict(command=tokenize("--ids", "the! cab"), out="32 1 4 2 3\n", wanted=WITHOUT)))
AGAIN = ("t h", "h e", "th e", "t h")


# The reference (tokenizers) keeps a pair's last rank: "h e" is first where "he" is a token too.
def he_gguf(g):
    g.get(G + "tokens")[24] = "he"
    g.put(G + "merges", (ARRAY, STRING), list(AGAIN))


def he_folder(f):
    v = f[J]["model"]["vocab"]
    del v[TOKENS[24]]
    v["he"] = 24
    f[J]["model"]["merges"] = [m.split() for m in AGAIN]


def he_lines(f):
    del f["vocab.json"][TOKENS[24]]
    f["vocab.json"]["he"] = 24
    f["merges.txt"] = "\n".join(AGAIN)


HE = dict(command=tokenize("--ids", "the th"), out="21 24 1 31\n")
accepted("A23", ("in a GGUF", he_gguf, HE))
folder("A23", ("in tokenizer.json", he_folder, HE))
folder("A23", ("in merges.txt", he_lines, HE), base=vocab_folder)

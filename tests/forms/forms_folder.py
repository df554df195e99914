"""M34 to M51: safetensors files and model folders that are refused."""
import itertools
import json
import os

from form_kit import (INSPECT, QUANTIZE, Special, both, change, fifo, lacks, member, no_file, put_file, rejected)
from model_files import CONFIG, EMBD, FF, Link, Safetensors, Tensor, folder_tensors, sharded_folder, small_folder

S, INDEX = "model.safetensors", "model.safetensors.index.json"
UP, NORM = "model.layers.0.mlp.up_proj.weight", "model.norm.weight"
ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
U64_MAX = 2 ** 64 - 1


def folder(row, *cases, **more):
    rejected(row, *cases, **{"base": small_folder, "name": "model", "json": 1 << 20, **more})


def entry(field, value, name=UP):
    return lambda f: f[S].header[name].__setitem__(field, value)


def no_entry(field, name=UP):
    return lambda f: f[S].header[name].pop(field)


def spelled(function):
    """function changes the header's bytes."""
    return lambda f: setattr(f[S], "spell", lambda header: function(json.dumps(header).encode()))


def instead_of(old, new):
    def replace(header):
        assert old in header
        return header.replace(old, new, 1)
    return spelled(replace)


def stored(*tensors, drop=()):
    """The file of the model's tensors but for those of these names, and of these."""
    names = {t.name for t in tensors} | set(drop)
    return put_file(S, Safetensors([t for t in folder_tensors() if t.name not in names] + list(tensors)))


def claims(n):
    return change(S, lambda s: setattr(s, "n_header", n))


folder(
    "M34",
    *((f"{n} bytes", f"too short for a safetensors file .found {n} bytes, allowed 8 or more", put_file(S, bytes(n)))
      for n in (0, 1, 7)),
    *((f"a header of {n} bytes", f"length of the header .found {n}, allowed 1 to [0-9]+ in [0-9]+ bytes, byte offset 0",
       claims(n)) for n in (0, 10 ** 6, 100_000_001, 2 ** 32, 2 ** 63, U64_MAX - 7, U64_MAX)),
    ("a header over the limit, and it is there", "length of the header .found 100000001, allowed 1 to 100000000",
     change(S, lambda s: (setattr(s, "n_header", 100_000_001), s.data.append(100_000_001)))),
    ("a Git LFS pointer", "not a safetensors file: it looks like a Git LFS pointer",
     put_file(S, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")),
    ("an HTML page", "not a safetensors file: it looks like an HTML page", put_file(S, "<!DOCTYPE html>\n<html>404</html>")),
    ("a zip archive", "not a safetensors file: it looks like a zip archive", put_file(S, b"PK\3\4" + b"abcd" * 10)),
    ("a GGUF file", "not a safetensors file: it looks like a GGUF file", put_file(S, b"GGUF\3\0\0\0" + bytes(16))))
folder(
    "M35",
    *((what, "not valid JSON: .*decode byte 0x.*byte offset [0-9]+", instead_of(b"model.norm", b"mod" + sequence + b"el"))
      for what, sequence in (
          ("an overlong slash", b"\xc0\xaf"), ("an overlong form of 3 bytes", b"\xe0\x80\xaf"),
          ("an overlong form of 4 bytes", b"\xf0\x80\x80\x80"), ("a surrogate", b"\xed\xa0\x80"),
          ("above U+10FFFF", b"\xf4\x90\x80\x80"), ("a cut sequence", b"\xe2\x82"), ("a lone continuation", b"\x80"),
          ("a byte that begins nothing", b"\xff"))),
    ("a sequence cut by the end of the header", "not valid JSON", spelled(lambda h: h[:-3] + b"\xe2")))
BAD_JSON = (
    ("cut", lambda t: t[:-1]),
    ("cut in a string", lambda t: t[:t.index(b"_") - 2]),
    ("a trailing comma", lambda t: t[:-1] + b",}"),
    ("a comment", lambda t: b"/* tensors */" + t),
    ("a comment to the line's end", lambda t: b"{// tensors\n" + t[1:]),
    ("a raw control byte in a string", lambda t: t[:-1] + b', "a\nb": 1}'),
    ("an unknown escape", lambda t: t[:-1] + b', "\\x41": 1}'),
    ("a cut escape", lambda t: t[:-1] + b', "\\u00": 1}'),
    ("half a surrogate pair", lambda t: t[:-1] + b', "\\ud800": 1}'),
    ("the wrong half of a surrogate pair", lambda t: t[:-1] + b', "\\udc00\\ud800": 1}'),
    ("an escaped NUL in a name", lambda t: t[:-1] + b', "a\\u0000b": 1}'),
    ("NaN", lambda t: t[:-1] + b', "x": NaN}'),
    ("Infinity", lambda t: t[:-1] + b', "x": -Infinity}'),
    ("a leading zero", lambda t: t[:-1] + b', "x": 01}'),
    ("a leading plus", lambda t: t[:-1] + b', "x": +1}'),
    ("a bare point", lambda t: t[:-1] + b', "x": 1.}'),
    ("single quotes", lambda t: t[:-1] + b", 'x': 1}"),
    ("text after the value", lambda t: t + b" {}"),
    ("nothing but spaces", lambda t: b"  "),
)
NOT_JSON = "not valid JSON: .*byte offset [0-9]+"
JSON_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", INDEX)


def as_bytes(function):
    """The function changes the bytes of a file that may not be there yet."""
    def edit(name):
        def apply(f):
            value = f.files.get(name, {"a_b": 1})
            f[name] = function(json.dumps(value).encode())
        return apply
    return edit


def base_of(name):
    return dict(base=sharded_folder) if name == INDEX else {}


folder(
    "M36",
    *((what, NOT_JSON, spelled(function)) for what, function in BAD_JSON),
    *((f"{what}, in {name}", f"{name}: {NOT_JSON}", as_bytes(function)(name), base_of(name))
      for (what, function), name in zip(BAD_JSON, itertools.cycle(JSON_FILES))),
    *((f"cut, in {name}", f"{name}: {NOT_JSON}", as_bytes(BAD_JSON[0][1])(name), base_of(name)) for name in JSON_FILES[1:]),
    ("an empty config.json", "config.json: not valid JSON", put_file("config.json", b"")),
    ("an empty tokenizer.json", "tokenizer.json: not valid JSON", put_file("tokenizer.json", b"")))
DEEP = r"JSON nested too deeply .allowed 64 levels, byte offset [0-9]+"
folder(
    "M37",
    ("100,000 arrays", DEEP, spelled(lambda h: b"[" * 100000)),
    ("100,000 objects", DEEP, spelled(lambda h: b'{"a":' * 100000)),
    ("65 levels in a field that nobody reads", DEEP, entry("x", json.loads("[" * 63 + "]" * 63))),
    *((f"100,000 arrays in {name}", f"{name}: {DEEP}", as_bytes(lambda t: t[:-1] + b', "x": ' + b"[" * 100000)(name),
       base_of(name)) for name in JSON_FILES))
folder(
    "M38",
    ("a name twice", "duplicate", spelled(lambda h: h[:-1] + b', "model.norm.weight": {}}')),
    ("a name twice, escaped", "duplicate", spelled(lambda h: h[:-1] + b', "model.n\\u006frm.weight": {}}')),
    ("a name twice, by a surrogate pair", "duplicate",
     spelled(lambda h: h[:-1] + b', "\\ud83d\\ude00": {}, "\xf0\x9f\x98\x80": {}}')),
    *((f"{field} twice", "duplicate", instead_of(b'"dtype": "F32"', f'"dtype": "F32", "{field}": {value}'.encode()))
      for field, value in (("dtype", '"F32"'), ("dt\\u0079pe", '"F32"'))),
    ("data_offsets twice", "duplicate", instead_of(b'"data_offsets"', b'"data_offsets": [0, 4], "data_offsets"')),
    ("__metadata__ twice", "duplicate", spelled(lambda h: b'{"__metadata__": {}, "__metadata__": {}, ' + h[1:])),
    *((f"a key twice in {name}", f"{name}: .*duplicate", as_bytes(lambda t: t[:-1] + b', "x": 1, "\\u0078": 1}')(name),
       base_of(name)) for name in JSON_FILES))
folder(
    "M39",
    ("no dtype", f"tensor {UP}: dtype .found nothing, allowed a string", no_entry("dtype")),
    ("dtype a number", "dtype .found integer, allowed a string", entry("dtype", 32)),
    ("dtype null", "dtype .found null, allowed a string", entry("dtype", None)),
    *((f"dtype {name!r}", f"unknown dtype .found {name}, allowed F32, F16, BF16", entry("dtype", name))
      for name in ("", "f32", "F99", "FLOAT", "F32 ")),
    ("no shape", "shape .found nothing, allowed an array", no_entry("shape")),
    ("shape a number", "shape .found integer, allowed an array", entry("shape", 1536)),
    ("shape text", "shape .found string, allowed an array", entry("shape", "48, 32")),
    ("shape an object", "shape .found object, allowed an array", entry("shape", {"0": 48})),
    ("no data_offsets", "data_offsets .found nothing, allowed an array", no_entry("data_offsets")),
    *((f"{len(v)} offsets", f"data_offsets .found {len(v)} numbers, allowed 2 to 2", entry("data_offsets", v))
      for v in ([], [0], [0, 4, 8])),
    ("five dimensions", "shape .found 5 numbers, allowed 0 to 4", entry("shape", [1, 1, 1, FF, EMBD])),
    ("an entry that is an array", "entry .found array, allowed an object",
     change(S, lambda s: s.header.__setitem__(UP, []))),
    ("a header that is an array", "header .found array, allowed an object", spelled(lambda h: b"[" + h + b"]")))
NUMBERS = ((-1, "a negative number"), (1.5, "number"), (1e3, "number"), ("48", "string"), (True, "boolean"),
           (None, "null"), ([48], "array"), (2 ** 64, "JSON"), (-2 ** 63, "a negative number"), (10 ** 30, "JSON"))
folder(
    "M40",
    *((f"{v!r} in shape", f"shape .found {found}|not valid {found}", entry("shape", [v, EMBD])) for v, found in NUMBERS),
    *((f"{v!r} in data_offsets", f"data_offsets .found {found}|not valid {found}", entry("data_offsets", [0, v]))
      for v, found in NUMBERS),
    ("an exponent", "shape .found number", instead_of(b'"shape": [48, 32]', b'"shape": [48, 32e0]')),
    ("2^63", "not valid JSON: too big integer|size overflows", entry("shape", [2 ** 63, 1])))
folder(
    "M41",
    ("begin after end", f"tensor {UP}: data_offsets .found begin 64 after end 32", entry("data_offsets", [64, 32])),
    ("end past the data", "lies past the end of the file .found [0-9]+ bytes of data, needed 1000000",
     entry("data_offsets", [10 ** 6 - FF * EMBD * 4, 10 ** 6])),
    ("end near 2^63", "lies past the end of the file", entry("data_offsets", [0, 2 ** 63 - 1])),
    ("end past the data, to be quantised", "lies past the end of the file", entry("data_offsets", [10 ** 6 - FF * EMBD * 4, 10 ** 6]),
     dict(command=QUANTIZE)),
    ("no data at all", "lies past the end of the file .found 0 bytes of data", change(S, lambda s: s.data.clear())),
    ("a byte too few", "lies past the end of the file .*an incomplete download",
     change(S, lambda s: s.data.__setitem__(-1, s.data[-1][:-1]))))
folder(
    "M42",
    ("a row more than there are bytes", f"tensor {UP}: size .found 6144 bytes, shape and dtype need 6272",
     entry("shape", [FF + 1, EMBD])),
    ("half as wide", "size .found 6144 bytes, shape and dtype need 3072", entry("dtype", "F16")),
    *((f"{shape}", "size overflows", entry("shape", shape))
      for shape in ([2 ** 32, 2 ** 32], [2 ** 62, 4], [2 ** 16] * 4, [2 ** 63 - 1, 2])),
    ("2^62 of 4 bytes in no bytes", "size overflows", both(entry("shape", [2 ** 62]), entry("data_offsets", [0, 0]))),
    ("nothing in some bytes", "size .found 6144 bytes, shape and dtype need 0", entry("shape", [0, EMBD])),
    ("some in no bytes", "size .found 0 bytes, shape and dtype need 6144", entry("data_offsets", [0, 0])))


def shifted(by, first=0, data=b""):
    """Tensors from this one on lie that much further on."""
    def edit(f):
        for e in list(f[S].header.values())[first:]:
            e["data_offsets"] = [x + by for x in e["data_offsets"]]
        f[S].data.insert(first, data)
    return edit


folder(
    "M43",
    ("data not from 0 on", "a hole in the data before tensor model.embed_tokens.weight .found offset 8, allowed 0",
     shifted(8, data=bytes(8))),
    ("a hole", f"a hole in the data before tensor {NORM} .found offset 4232, allowed 4224", shifted(8, 1, bytes(8))),
    ("an overlap", "tensors model.embed_tokens.weight and model.norm.weight overlap .data offset 4220", shifted(-4, 1)),
    ("two in one place", "overlap", entry("data_offsets", [0, 128], NORM)),
    ("a byte after the last", "bytes after the last tensor .found [0-9]+ bytes of data, allowed [0-9]+",
     change(S, lambda s: s.data.append(b"\0"))),
    ("a gigabyte after the last", "bytes after the last tensor", change(S, lambda s: s.data.append(1 << 30))))
folder(
    "M44",
    *((f"{value!r}", f"__metadata__ .found {found}, allowed an object",
       change(S, lambda s, value=value: s.header.__setitem__("__metadata__", value)))
      for value, found in (("pt", "string"), ([], "array"), (None, "null"), (1, "integer"))),
    *((f"a value {value!r}", f"__metadata__: format .found {found}, allowed a string",
       change(S, lambda s, value=value: s.header.__setitem__("__metadata__", {"format": value})))
      for value, found in ((1, "integer"), (None, "null"), (["pt"], "array"), ({}, "object"), (True, "boolean"))))
folder(
    "M45",
    *((kind, f"type of tensor {UP} is not supported .found {kind}",
       stored(Tensor(UP, (FF, EMBD), kind, bytes(FF * EMBD * width))))
      for kind, width in (("BOOL", 1), ("I64", 8), ("I32", 4), ("U8", 1), ("F64", 8), ("F8_E4M3", 1))),
    ("a norm of integers", "type of tensor model.norm.weight is not supported .found I32",
     stored(Tensor(NORM, (EMBD,), "I32"))))


def index(*path):
    return member(INDEX, *path)


def sharded(row, *cases):
    folder(row, *cases, base=sharded_folder)


sharded(
    "M46",
    ("no weight_map", f"{INDEX}: weight_map .found nothing, allowed an object", lacks(INDEX, "weight_map")),
    ("weight_map an array", "weight_map .found array, allowed an object", index("weight_map", [])),
    ("an empty weight_map", "weight_map .found 0 tensors, allowed 1 to 65536", index("weight_map", {})),
    ("an index that is an array", "weight_map .found nothing|found array", put_file(INDEX, [])),
    *((f"a shard named {value!r}", f"weight_map: {UP} .found {found}, allowed a string", index("weight_map", UP, value))
      for value, found in ((1, "integer"), (None, "null"), ([ONE], "array"))),
    ("a tensor twice", "duplicate", as_bytes(lambda t: t[:-2] + f', "{UP}": "{ONE}"}}}}'.encode())(INDEX)),
    ("1,025 shards", "number of shards .found 102[0-9], allowed 1024",
     change(INDEX, lambda i: i["weight_map"].update((f"x{n}", f"{n}.safetensors") for n in range(1023)))))
NAMES = ("/etc/passwd", "../" + ONE, "..", ".", "", "a/b.safetensors", "a\\b.safetensors", "a\nb", "a\x7fb", "n" * 256,
         "..\\" + ONE, "a..b")


def outside(to):
    """The shard is a link that leads out of the folder; what it leads to must not be opened."""
    return both(no_file(ONE), put_file(ONE, Link(to)))


sharded(
    "M47",
    *((repr(name[:20]), f"{INDEX}: weight_map: {UP} .found .*allowed the name of a file in this folder",
       index("weight_map", UP, name)) for name in NAMES),
    ("a NUL", "NUL|U0000|u0000", index("weight_map", UP, "a\0b")),
    ("a link out of the folder", "a link that leads out of the model's folder", outside("/etc/passwd")),
    ("a link to a device", "a link that leads out of the model's folder", outside("/dev/zero")),
    ("a link to itself", "missing|a link", outside(ONE)))
sharded(
    "M48",
    ("one of two", f"model: 1 of 2 weight files are missing: {TWO}", no_file(TWO)),
    ("both", f"model: 2 of 2 weight files are missing: {ONE}, {TWO}", no_file(ONE, TWO)),
    ("one file, a link that leads nowhere", f"model: 1 of 1 weight files are missing: {S}",
     both(no_file(ONE, TWO, INDEX), put_file(S, Link("../blobs/0")))),
    ("one, without an index", f"1 of 2 weight files are missing: {ONE}", no_file(ONE, INDEX)),
    ("one that is a folder", "not a regular file .found a directory",
     both(no_file(TWO), put_file(f"{TWO}/README.md", "weights"))),
    ("many", "1000 of 1002 weight files are missing: .*",
     change(INDEX, lambda i: i["weight_map"].update((f"x{n:04d}", f"x{n:04d}.safetensors") for n in range(1000)))))


def moved(f):
    """The tensor stands in the other shard than the index says."""
    f[INDEX]["weight_map"][UP] = ONE


sharded(
    "M49",
    ("in another shard", f"{ONE}: tensor {UP} is not in this file, where {INDEX} places it", moved),
    ("in none", f"{TWO}: tensor no.such is not in this file", index("weight_map", "no.such", TWO)),
    ("in two shards, without an index", f"{ONE}: duplicate tensor model.embed_tokens.weight, also in .*{TWO}",
     both(no_file(INDEX), put_file(TWO, Safetensors(folder_tensors())))))
C = "config.json"


def config(*path):
    return member(C, *path)


def number(key, most):
    for v in (0, -1, most + 1, 2 ** 62):
        yield f"{key} {v}", f"{C}: {key} .found {v}, allowed 1 to {most}", config(key, v)


folder(
    "M50",
    ("missing", f"{C}: missing: a model folder needs it", no_file(C)),
    *((f"{v!r}", f"{C}: found {found}, allowed an object", put_file(C, v))
      for v, found in (([CONFIG], "array"), ("1", "integer"), ('"llama"', "string"), ("null", "null"))),
    *((f"{name}, a link that leads nowhere", f"{name}: cannot be opened: No such file", put_file(name, Link("../blobs/0")),
       dict(status=9, out=""))
      for name in (*JSON_FILES[:4], "chat_template.jinja")),
    (f"{INDEX}, a link that leads nowhere", f"{INDEX}: cannot be opened: No such file",
     both(no_file(S), put_file(INDEX, Link("../blobs/0"))), dict(status=9, out="")),
    ("a FIFO", f"{C}: not a regular file .found a FIFO",
     lambda f: Special(lambda p: (f.files.pop(C), f.save(p), fifo(os.path.join(p, C))))),
    *((f"no {key}", f"required keys? missing: {key}", lacks(C, key))
      for key in ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                  "max_position_embeddings", "rms_norm_eps")),
    ("several missing", "required keys missing: num_hidden_layers, hidden_size",
     both(lacks(C, "num_hidden_layers"), lacks(C, "hidden_size"))),
    ("model_type a number", "model_type: wrong type .found integer, allowed a string", config("model_type", 1)),
    ("another model_type", 'architecture is not supported .found "mamba", allowed: gpt2', config("model_type", "mamba")),
    ("another activation", 'hidden_act is not supported .found "mish", allowed: silu', config("hidden_act", "mish")),
    ("activation a number", "hidden_act: wrong type .found integer, allowed a string", config("hidden_act", 1)),
    *number("hidden_size", 65536), *number("num_hidden_layers", 512), *number("num_attention_heads", 1024),
    *((f"hidden_size {v!r}", f"{C}: hidden_size: wrong type .found {found}, allowed an integer", config("hidden_size", v))
      for v, found in ((1.5, "number"), ("4", "string"), (True, "boolean"), ([4], "array"), ({}, "object"))),
    *number("max_position_embeddings", 2 ** 20), *number("vocab_size", 2 ** 22),
    *((f"rms_norm_eps {v!r}", f"rms_norm_eps.*found {found}", config("rms_norm_eps", v))
      for v, found in ((0, "0"), (-1e-5, "-1e-05"), ("1e-5", "string"), (1e300, "1e.300"))),
    *((f"rope_theta {v!r}", f"rope_theta.*found {found}", config("rope_theta", v))
      for v, found in ((0, "0"), (-1.0, "-1"), ("1e4", "string"))),
    ("tie_word_embeddings a number", "tie_word_embeddings: wrong type .found integer, allowed a boolean",
     config("tie_word_embeddings", 1)),
    ("rope_scaling text", "rope_scaling: wrong type .found string, allowed an object", config("rope_scaling", "linear")),
    ("rope_scaling of another kind", "is not supported .found", config("rope_scaling", {"type": "spiral", "factor": 2})),
    ("shapes of another size", "shape of tensor model.layers.0.mlp.gate_proj.weight .found 48 x 32, wanted 64 x 32", config("intermediate_size", 64)),
    ("another vocabulary", "rows of the token embedding .found 33, wanted 34", config("vocab_size", 34)),
    ("a tensor missing", f"required tensors missing: {UP}", stored(drop=[UP])),
    ("a tensor missing, to be quantised", "missing", stored(drop=[UP]), dict(command=QUANTIZE)))
folder(
    "M51",
    *((name, f"holds only pickle weights, which are never read .found {name}, allowed model.safetensors",
       both(no_file(S), put_file(name, b"\x80\2}q\0."))) for name in
      ("pytorch_model.bin", "model.pt", "consolidated.00.pth", "model.ckpt", "weights.pkl")),
    ("beside an index of pickles", "holds only pickle weights",
     both(no_file(S), put_file("pytorch_model.bin", b"\x80\2}q\0."), put_file("pytorch_model.bin.index.json", {}))),
    ("no weights at all", "no weights in this folder .found none", no_file(S)),
    ("for inspection too", "holds only pickle weights", both(no_file(S), put_file("pytorch_model.bin", b"\x80\2}q\0.")),
     dict(command=INSPECT)))

#!/usr/bin/env python3
"""Writes src/token/unicode_data.h and src/token/nfc_data.h.

    python3 tools/make-unicode.py            (needs the PyPI package tokenizers)

The tables are what the reference does, asked of it code point by code point, and not what one version
of the Unicode database says: in tokenizers 0.23.3 the regular expressions and \\w know Unicode 16, the
Digits pre-tokenizer 17, and NFC 12.1. A newer reference may move them: run this again and look at the
difference.
"""
import pathlib
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent.parent / "src" / "token"
CODES = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HEAD = f"""/* Made by tools/make-unicode.py from tokenizers {tokenizers.__version__}: run that, do not edit this. */
/* clang-format off */
"""


# ---- character classes ---------------------------------------------------------------------------


def matching(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    return {c for c in CODES if not split.pre_tokenize_str(chr(c))}


def numeric():
    digits = pre_tokenizers.Digits(individual_digits=True)
    return {c for c in CODES if len(digits.pre_tokenize_str("a" + chr(c))) == 2}


def in_words():
    """A single-word added token is not found where a word character follows it."""
    tokenizer = Tokenizer(models.BPE({"a": 0}, []))
    tokenizer.add_tokens([AddedToken("QQ", single_word=True, normalized=False)])
    found = tokenizer.token_to_id("QQ")
    return {c for c in CODES if found not in tokenizer.encode("QQ" + chr(c)).ids}


def hexed(values, width, per_line):
    items = [f"0x{v:0{width}x}," for v in values]
    return "".join("    " + " ".join(items[i : i + per_line]) + "\n" for i in range(0, len(items), per_line))


def decimal(values, per_line):
    items = [f"{v}," for v in values]
    return "".join("    " + " ".join(items[i : i + per_line]) + "\n" for i in range(0, len(items), per_line))


def write_classes():
    bits = [(matching(r"\p{L}"), 1), (matching(r"\p{N}"), 2), (matching(r"\s"), 4), (numeric(), 8), (in_words(), 16),
            (matching(r"\p{M}"), 32), (matching(r"[\p{Lu}\p{Lt}]"), 64), (matching(r"\p{Ll}"), 128)]
    cls = [0] * 0x110000
    for members, bit in bits:
        for c in members:
            cls[c] |= bit
    runs = [c for c in range(0x110000) if c == 0 or cls[c] != cls[c - 1]]
    pages, at = [], 0
    for page in range(0x110000 >> 10):  # the run that holds the first code point of each page
        while at + 1 < len(runs) and runs[at + 1] <= page << 10:
            at += 1
        pages.append(at)
    pages.append(len(runs) - 1)
    text = HEAD
    text += "\n/* Runs of code points of one class: first << 8 | class. */\n"
    text += f"static const uint32_t class_runs[{len(runs)}] = {{\n"
    text += hexed([r << 8 | cls[r] for r in runs], 8, 9) + "};\n"
    text += "\n/* The run that holds code point 1024 * i. */\n"
    text += f"static const uint16_t class_pages[{len(pages)}] = {{\n" + decimal(pages, 20) + "};\n"
    text += "\nconst uint8_t tg_class_ascii[128] = {\n" + decimal(cls[:128], 24) + "};\n"
    (OUT / "unicode_data.h").write_text(text)
    print("classes:", len(runs), "runs;", ", ".join(str(len(m)) for m, _ in bits))


# ---- composition ---------------------------------------------------------------------------------

nfd = normalizers.NFD().normalize_str
nfc = normalizers.NFC().normalize_str


def combining_classes():
    """The marks that NFD reorders, with Python's class for each, proved by their order among old marks."""
    probes = {}
    for c in CODES:
        k = unicodedata.ucd_3_2_0.combining(chr(c))
        if k and k not in probes and nfd(chr(c)) == chr(c):
            probes[k] = chr(c)
    result = {}
    for c in CODES:
        ch = chr(c)
        if nfd(ch) != ch:
            continue
        after_first = nfd("a" + ch + probes[1]) != "a" + ch + probes[1]  # class above 1
        before_last = nfd("a" + probes[240] + ch) != "a" + probes[240] + ch  # class 1 to 239
        if not after_first and not before_last:
            continue
        k = result[c] = unicodedata.combining(ch)
        for other, probe in probes.items():
            assert (nfd("a" + ch + probe) == "a" + ch + probe) == (k <= other), hex(c)
            assert (nfd("a" + probe + ch) == "a" + probe + ch) == (other <= k), hex(c)
    return result


def hangul(c):
    return 0xAC00 <= c < 0xAC00 + 11172


def write_nfc():
    ccc = combining_classes()
    full = {c: tuple(map(ord, nfd(chr(c)))) for c in CODES if not hangul(c) and nfd(chr(c)) != chr(c)}
    whole = {parts: c for c, parts in full.items() if len(parts) > 1}
    whole.update({parts: c for c, parts in full.items() if nfc(chr(c)) == chr(c)})
    maps = {}  # one step: a single character, or a pair whose first may be mapped again
    for c, parts in full.items():
        first = parts[0] if len(parts) < 3 else whole[parts[:-1]]
        maps[c] = (first, parts[-1] if len(parts) > 1 else 0)
    composites = {c: pair for c, pair in maps.items() if pair[1] and nfc(chr(c)) == chr(c)}
    for c, (a, b) in composites.items():
        assert nfc(chr(a) + chr(b)) == chr(c)

    # Not "yes" in the quick check: what NFC changes, and what may join the character before it.
    maybe = {c for c in CODES if nfc(chr(c)) != chr(c)} | {b for _, b in composites.values()}
    maybe |= set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    props = [ccc.get(c, 0) | (256 if c in maybe else 0) for c in range(0x110000)]
    runs = [c for c in range(0x110000) if c == 0 or props[c] != props[c - 1]]

    codes = sorted(maps)
    index = {c: i for i, c in enumerate(codes)}
    by_pair = [index[c] for c in sorted(composites, key=composites.get)]
    text = HEAD
    text += "\n/* Runs of code points: first << 9 | 256 where the quick check does not say yes | combining class. */\n"
    text += f"static const uint32_t nfc_runs[{len(runs)}] = {{\n"
    text += hexed([r << 9 | props[r] for r in runs], 8, 9) + "};\n"
    text += "\n/* Canonical mappings, Hangul aside: {code, first, second or 0}; first may be mapped again. */\n"
    text += f"static const uint32_t nfc_maps[{len(codes)}][3] = {{\n"
    items = [f"{{0x{c:x}, 0x{maps[c][0]:x}, {hex(maps[c][1]) if maps[c][1] else 0}}}," for c in codes]
    text += "".join("    " + " ".join(items[i : i + 4]) + "\n" for i in range(0, len(items), 4)) + "};\n"
    text += "\n/* Those that compose, as indices into nfc_maps, ordered by (first, second). */\n"
    text += f"static const uint16_t nfc_composites[{len(by_pair)}] = {{\n" + decimal(by_pair, 20) + "};\n"
    (OUT / "nfc_data.h").write_text(text)
    print("nfc:", len(ccc), "marks;", len(codes), "mappings;", len(by_pair), "composites;", len(runs), "runs")


write_classes()
write_nfc()

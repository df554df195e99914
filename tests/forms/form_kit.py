"""What the tables of cases share: a case, the edits that make one from a valid description, and what is no model file."""
import os
import pathlib
import sys
from typing import Callable, NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import model_files  # noqa: E402
from model_files import ARRAY, STRING, Raw, small_gguf  # noqa: E402

TEXT = "the cab\n"
LOGITS = ("logits", "-p", TEXT, "--all", "--format", "npy")
INSPECT = ("inspect", "--json", "--tensors")
QUANTIZE = ("quantize", "{}", "{}.out", "--type", "Q8_0")  # {}: the model; else it follows on -m


class Case(NamedTuple):
    row: str
    what: str
    wanted: str      # regular expression: what the line on stderr says; "" in an A row: nothing stands there
    edit: Callable   # changes the description that `base` makes, or returns another
    base: Callable = small_gguf
    status: int = 3
    name: str = "m.gguf"  # of the file or folder
    command: tuple = LOGITS
    json: int = 0  # so many bytes of it are JSON, which may take 16 times as many
    # A rows: what stdout must be. None: what `like` gives, a base and a command; else bytes as text, or a function
    out: object = None
    like: tuple = None  # None: the base itself and the command
    differs: bool = False  # from what `like` gives


CASES = []


def rejected(row, *cases, **more):
    """Cases as (what, wanted, edit); a dictionary behind them has other fields."""
    for what, wanted, edit, *rest in cases:
        CASES.append(Case(row, what, wanted, edit, **(more | (rest[0] if rest else {}))))


class Bytes(bytes):
    """A whole file."""

    def save(self, path):
        pathlib.Path(path).write_bytes(self)


class Special:
    """What is made by a function of the path."""

    def __init__(self, make):
        self.save = make


def instead(value):
    return lambda _: value


def file(content):
    return instead(Bytes(content))


def nothing(_):
    pass


def apply(edit, d):
    """What the edit makes of the description: another one, or the same, changed."""
    new = edit(d)
    return new if hasattr(new, "save") else d


def both(*edits):
    def edit(d):
        for e in edits:
            d = apply(e, d)
        return d
    return edit


# ---- of a GGUF ------------------------------------------------------------------------------------------

UP = "blk.0.ffn_up.weight"


def field(**values):
    def edit(d):
        for name, value in values.items():
            assert hasattr(d, name)
            setattr(d, name, value)
    return edit


def pair(key, kind, value):
    return lambda g: g.put(key, kind, value)


def raw_pair(*parts):
    return lambda g: g.pairs.append(Raw(b"".join(parts)))


def array(key, elem, n, rest=b""):
    """An array that claims n elements."""
    return pair(key, ARRAY, Raw(model_files.struct.pack("<IQ", elem & 0xffffffff, n) + rest))


def without(*keys):
    def edit(g):
        for key in keys:
            g.drop(key)
    return edit


def tensor(which, **values):
    return lambda g: field(**values)(g.tensor(which))


def more(*tensors):
    return lambda g: g.tensors.extend(tensors)


def no_tensor(*names):
    def edit(g):
        g.tensors = [t for t in g.tensors if t.name not in names]
    return edit


def architecture(name):
    """The same keys under another architecture's name."""
    def edit(g):
        g.put("general.architecture", STRING, name)
        for p in g.pairs:
            p[0] = p[0].replace("llama.", f"{name}.", 1)
    return edit


# ---- of a folder ----------------------------------------------------------------------------------------


def member(name, *path):
    """path: keys that lead to a value, and that value, in the file of this name."""
    def edit(f):
        *keys, last, value = path
        at = f[name]
        for key in keys:
            at = at[key]
        at[last] = value
    return edit


def lacks(name, *path):
    def edit(f):
        at = f[name]
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]
    return edit


def put_file(name, content):
    return lambda f: f.files.__setitem__(name, content)


def no_file(*names):
    def edit(f):
        for name in names:
            del f[name]
    return edit


def change(name, function):
    """function changes what stands for the file of this name."""
    return lambda f: function(f[name])


def fifo(path):
    os.mkfifo(path)

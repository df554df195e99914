#!/usr/bin/env python3
"""Draws what `make bench-attention` measured: attention.svg (time, error and memory of each algorithm against
the length) and softmax.svg (time of an element against the row, and time of a key in decode).

    tools/plot.py build/release/attention.csv FOLDER
"""
import csv
import pathlib
import sys

try:
    import matplotlib
except ImportError:
    sys.exit("plot.py: needs matplotlib (pip install matplotlib)")
matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

# One colour and one mark for an algorithm in every panel.
STYLE = {
    "auto": ("#d62728", "o"),
    "safe": ("#7f7f7f", "s"),
    "fused": ("#8c564b", "^"),
    "online": ("#ff7f0e", "v"),
    "chunked": ("#9467bd", "D"),
    "flash": ("#1f77b4", "<"),
    "flash2": ("#17becf", ">"),
    "split": ("#2ca02c", "P"),
    "naive": ("#e377c2", "*"),
    "online_scalar": ("#bcbd22", "x"),
    "read": ("#000000", "."),
}


def lines(rows, section, value, **where):
    """{algorithm: [(n, value), ...]} of a section, by ascending n."""
    out = {}
    for r in rows:
        if r["section"] == section and r[value] and all(r[k] == v for k, v in where.items()):
            out.setdefault(r["algorithm"], []).append((float(r["n"]), float(r[value])))
    return {name: sorted(points) for name, points in out.items()}


def draw(axes, data, title, ylabel):
    for name, points in data.items():
        colour, mark = STYLE.get(name.split(" (")[0], ("#444444", "+"))
        dash = "--" if "one thread" in name else "-"
        xs, ys = zip(*[p for p in points if p[1] > 0] or [(1, float("nan"))])
        axes.plot(xs, ys, dash, color=colour, marker=mark, markersize=4, linewidth=1.2, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(True, which="major", linewidth=0.3)
    axes.legend(fontsize=7)


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    print(path)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    with open(sys.argv[1], newline="") as f:
        rows = list(csv.DictReader(f))
    folder = pathlib.Path(sys.argv[2])
    plt.rcParams.update({"svg.hashsalt": "tinygpt", "svg.fonttype": "none"})  # same figures, same file

    figure, (time, error, memory) = plt.subplots(1, 3, figsize=(12, 4))
    draw(time, lines(rows, "algorithms", "ns_per_unit"), "time of a query and key (causal, d = 64)", "ns")
    draw(error, lines(rows, "algorithms", "error"), "largest difference from float64", "")
    draw(memory, lines(rows, "algorithms", "extra_bytes"), "memory beside inputs and output, a thread", "bytes")
    for axes in (time, error, memory):
        axes.set_xlabel("N, rows and keys", fontsize=9)
    save(figure, folder / "attention.svg")

    figure, (softmax, split) = plt.subplots(1, 2, figsize=(9, 4))
    draw(softmax, lines(rows, "softmax", "ns_per_unit"), "softmax of a row", "ns an element")
    softmax.set_xlabel("elements", fontsize=9)
    draw(split, lines(rows, "split", "ns_per_unit", variant="F16"), "decode: one query, one KV head, float16", "ns a key")
    split.set_xlabel("keys", fontsize=9)
    save(figure, folder / "softmax.svg")


main()

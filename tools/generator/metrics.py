"""The table of docs/metrics.md: every metric of /metrics, from the calls that write them.

A call of `single` or `family` in Sources/Service names a metric, its type and its HELP text. A pool's metrics are named
by its prefix.
"""

import re
from pathlib import Path

BEGIN = "<!-- Metrics: made by tools/generate from Sources/Service. -->\n"
END = "<!-- End of the metrics. -->\n"
SERVICE = Path(__file__).resolve().parents[2] / "Sources/Service"

TEXT = r'"((?:[^"\\]|\\.)*)"'
CALL = re.compile(rf'\b(?:single|family)\(\s*{TEXT},\s*"(\w+)",\s*{TEXT}')
# A declaration has a colon or a space where a call has a text.
BEGUN = re.compile(r"\b(?:single|family)\((?!_ |name,)")
POOL = re.compile(rf"\bpool\({TEXT}")


def metrics(sources):
    """The name, type and text of each metric that the sources write, by name.

    >>> for metric in metrics(['single("a_total", "counter", "As.", 1)  pool("x", p)', '''
    ... func pool() { single(
    ...     "\\\\(prefix)_queued", "gauge", "Work that waits.", 2) }''']): print(*metric, sep=" | ")
    a_total | counter | As.
    postern_x_pool_queued | gauge | Work that waits.
    >>> metrics(['family(kind + "_total", "counter", "")'])
    Traceback (most recent call last):
    ValueError: not written out as "name", "type", "text": family(kind + "_total", "counter", "")
    """
    pools = sorted(pool for source in sources for pool in POOL.findall(source))
    found = {}
    for source in sources:
        for begun in BEGUN.finditer(source):
            call = CALL.match(source, begun.start())
            if not call:
                raise ValueError('not written out as "name", "type", "text": '
                                 + source[begun.start():begun.start() + 60])
            name, kind, text = call.groups()
            for pool in pools if r"\(prefix)" in name else [""]:
                whole = name.replace(r"\(prefix)", f"postern_{pool}_pool")
                if whole in found:
                    raise ValueError(f"two metrics have the name {whole}")
                found[whole] = (whole, kind, text)
    return [found[name] for name in sorted(found)]


def metrics_of_server():
    return metrics([path.read_text() for path in sorted(SERVICE.glob("*.swift"))])


def with_table(_, page):
    """The page with the table of all metrics between the two marks."""
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    rows = ["| metric | type | meaning |", "|---|---|---|"]
    rows += [f"| `{name}` | {kind} | {text} |" for name, kind, text in metrics_of_server()]
    return page[:start] + "\n" + "\n".join(rows) + "\n\n" + page[end:]

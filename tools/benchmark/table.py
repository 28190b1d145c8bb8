"""Makes a table of the figures of all rounds: their median, their spread, and whether a goal is met."""
from statistics import median

from .rounds import RATES, cpu, rate, slowest
from .server import CORES


# A figure whose rounds spread further than this share of their median is marked.
SPREAD_MAX = 0.10


class Row:
    """`ours` and `reference` have one value per round, and so has `loads`: the processors that the load tool used. A ratio
    is taken within each round. `beside` is the name of the reference."""

    def __init__(self, what, ours, unit, beside="", reference=None, most=None, least=None, distances=None,
                 loads=None):
        self.what, self.ours, self.unit, self.beside, self.reference = what, ours, unit, beside, reference
        self.most, self.least, self.distances, self.loads = most, least, distances or [], loads or []

    @property
    def ratios(self):
        return [value / other for value, other in zip(self.ours, self.reference)] if self.reference else None

    @property
    def holds(self):
        judged = median(self.ratios or self.ours)
        return (self.most is None or judged <= self.most) and (self.least is None or judged >= self.least)

    @property
    def misses_clearly(self):
        """Whether every round misses the goal: the miss is larger than the spread."""
        return self.used is not None and min(self.used) > 1

    @property
    def used(self):
        """How much of the goal each round used up, 1 is all of it; None without a goal."""
        judged = self.ratios or self.ours
        if self.most is not None:
            return [value / self.most for value in judged]
        return [self.least / value for value in judged] if self.least is not None else None

    @property
    def spread(self):
        """The distance from the least to the greatest of the rounds, as a share of the median."""
        judged = self.ratios or self.ours
        return (max(judged) - min(judged)) / abs(median(judged)) if median(judged) else 0

    def cells(self):
        """(what, measured, beside it, ratio, goal, verdict)"""
        sign, bound = ("≤", self.most) if self.most is not None else ("≥", self.least)
        unit = "×" if self.reference else self.unit and " " + self.unit
        goal = "" if bound is None else f"{sign} {number(bound)}{unit}"
        measured = f"{spread(self.ours)} {self.unit}".strip()
        beside = f"{self.beside} {spread(self.reference)} {self.unit}".strip() if self.reference else self.beside
        ratio = spread(self.ratios) + "×" if self.reference else ""
        return self.what, measured, beside, ratio, goal, "" if bound is None else "within" if self.holds else "MISSED"

    def near_and_far(self):
        """How far apart the processors were, in nanoseconds."""
        known = [value for value in self.distances if value is not None]
        return f"{min(known)}–{max(known)} ns" if known else ""


def number(value):
    """
    >>> [number(value) for value in [0.951, 2.5, 12.34, 345.6, 15000, -407.73]]
    ['0.95', '2.5', '12.3', '346', '15,000', '-408']
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".")


def spread(values):
    """
    >>> spread([3, 1, 2]), spread([2.0])
    ('2 (1–3)', '2')
    """
    if len(values) == 1 or min(values) == max(values):
        return number(median(values))
    return f"{number(median(values))} ({number(min(values))}–{number(max(values))})"


def rows(figures):
    """The rows of the table, without those whose peer was not measured."""
    table = []

    def each(name, read):
        values = figures.values.get(name)
        return values and [read(value) for value in values]

    def add(what, name, read, unit, beside="", reference=None, most=None, least=None):
        if beside and reference is None:
            return
        loads = [value["generator_cpu_share"] for value in figures.values[name]
                 if isinstance(value, dict) and "generator_cpu_share" in value]
        table.append(Row(what, each(name, read), unit, beside, reference, most, least, figures.distances[name], loads))

    def peer(name, key):
        return each(name, lambda value: value[key])

    def first_of_each_round(name, key):
        values = peer(name, key)
        return values and values[::len(values) // len(figures.values["get 64x1"])]

    for shape, most, better in [("64x1", 1.4, None), ("8x32", 1.7, 5)]:
        what = f"`Users.Get`, {shape}"
        add(what, f"get {shape}", cpu, "µs", "floor", peer(f"floor {shape}", "server_cpu_microseconds"), most)
        add(what, f"get {shape}", cpu, "µs", "gRPC C++", peer(f"gRPC {shape}", "server_cpu_microseconds"),
            better and 1 / better)
    for shape, most in [("64x1", 1.35), ("8x32", None)]:
        add(f"`Users.Get` over TLS, {shape}", f"get by TLS {shape}", cpu, "µs", "plain text", each(f"get {shape}", cpu), most)
    for shape, most in [("64x1", 1), ("8x32", 0.6)]:
        if f"gRPC {shape}" in figures.values:
            add(f"`Users.Get` by gRPC, {shape}", f"get by gRPC {shape}", lambda value: value["server_cpu_microseconds"], "µs",
                "gRPC C++", peer(f"gRPC {shape}", "server_cpu_microseconds"), most)
    add("`VerifyIdToken`, new tokens, 8x32", "verify", cpu, "µs", "RSA verify", peer("RSA verify", "cpu_microseconds"), 1.45)
    add("`VerifyIdToken`, repeated tokens, 8x32", "verify repeated", cpu, "µs", most=2.5)
    add("`Refresh`, RS256, 8x32", "refresh RS256", rate, "/s", f"RSA sign × {CORES}", peer("RSA sign", "per_second"),
        least=0.7)
    if "refresh reuse" in figures.values:
        add("`Refresh` where refresh tokens are reused, RS256, 8x32", "refresh reuse", rate, "/s", f"RSA sign × {CORES}",
            peer("RSA sign", "per_second"), least=0.85)
    add("`Refresh`, ES256, 8x32", "refresh ES256", rate, "/s", least=7500 * CORES)
    both = None
    if "RSA sign" in figures.values:
        both = [sum(pair) for pair in zip(peer("RSA sign", "cpu_microseconds"), peer("RSA verify", "cpu_microseconds"))]
    add("`SignInWithIdp`, known user, 8x32", "idp", cpu, "µs", "RSA verify + sign", both, 1.5)
    add("`SignInWithPassword`", "sign-in", rate, "/s", f"argon2id + RSA sign, × {CORES}",
        peer("hash and sign", "per_second"))
    add("`SignInWithPassword`", "sign-in", rate, "/s", "C server: the same, and a commit",
        peer("durable sign-in", "per_second"), least=0.95)
    if "durable sign-in" in figures.values:
        beside = "beside_hash_microseconds"
        table.append(Row("its CPU beside the hash, above that server's", [value - other for value, other in zip(
            peer("sign-in", beside), peer("durable sign-in", beside))], "µs", most=150,
            distances=figures.distances["sign-in"]))
    add("sign-ins beside lookups without end", "sign-in beside lookups", rate, "/s", f"argon2id + RSA sign, × {CORES}",
        first_of_each_round("hash and sign", "per_second"), least=0.1)
    for per_second, most in zip(RATES, [2, 4]):
        add(f"`Get`, `Verify`, `Lookup` p99 beside sign-ins without end, {per_second:,}/s, open loop",
            f"beside sign-ins, {per_second}/s", slowest, "ms", most=most)
    add("`Users.Create`, 64x1", "create", rate, "/s", "LMDB commits of 64", peer("commits", "per_second"), least=0.7)
    for what, name, unit, most in [
            ("an idle connection", "idle", "KiB", 8), ("an idle TLS connection", "idle TLS", "KiB", 40), ("1,000 tenants × 3 identity providers", "providers", "MB", 20),
            ("start", "start", "ms", 150), ("own memory after it", "memory", "MiB", 60), ("posternd, stripped", "binary", "MiB", 25)]:
        add(what, name, lambda value: value, unit, most=most)
    return table


def printed(table):
    lines = [("", "measured", "beside it", "ratio", "goal", "", "spread", "load", "processors"),
             *((*row.cells(), f"{row.spread:.0%}{' !' if row.spread > SPREAD_MAX else ''}",
                f"{median(row.loads):.2f}" if row.loads else "", row.near_and_far()) for row in table)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() + "\n" for line in lines)


def markdown(table):
    lines = ["| what | measured | beside it | ratio | goal |", "|---|---|---|---|---|"]
    for row in table:
        what, measured, beside, ratio, goal, verdict = row.cells()
        lines.append(f"| {what} | {measured} | {beside} | {ratio} | {goal}{': **missed**' if verdict == 'MISSED' else ''} |")
    return "\n".join(lines) + "\n"

"""Small plots as SVG, for docs/performance.md: readable on a light and on a dark page, no script, no fonts."""
from math import ceil, floor, log10
from xml.sax.saxutils import escape

GOOD, BAD, GREY, BLUE = "#1a7f37", "#c62828", "#888888", "#1f6feb"


def text(x, y, content, anchor="start", size=12):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}">{escape(content)}</text>\n'


def line(x1, y1, x2, y2, color=GREY, width=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"/>\n'


def svg(width, height, body, title):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(title)}" font-family="sans-serif" fill="{GREY}">\n{body}</svg>\n')


def powers(low, high):
    """Round numbers on a logarithmic axis: 1, 2 and 5 times powers of ten.

    >>> powers(0.3, 4)
    [0.5, 1, 2]
    """
    places = [factor * 10 ** power for power in range(floor(log10(low)) - 1, ceil(log10(high)) + 1) for factor in [1, 2, 5]]
    return [int(place) if place >= 1 else round(place, 6) for place in places if low <= place <= high]


def goals(rows):
    """A line for each goal: how much of it was used up, by the median of the rounds (the dot) and by all (the bar).

    >>> from types import SimpleNamespace
    >>> goals([SimpleNamespace(what="its CPU", beside="", used=[-2.7], holds=True)]).count('<circle cx="500.0"')
    1
    """
    # The same figure may stand beside the floor and beside a peer.
    used = [(row.what + (f" : {row.beside}" if len(row.beside) < 10 and row.beside else ""), sorted(row.used), row.holds)
            for row in rows if row.used]
    left, width, top, step = 500, 980, 26, 22
    # A figure that is a difference can be below zero: it is drawn at the left edge.
    low = max(0.01, min(0.5, min(values[0] for _, values, _ in used)))
    high = max(2, max(values[-1] for _, values, _ in used))

    def place(value):
        return left + (width - left - 20) * (log10(max(value, low)) - log10(low)) / (log10(high) - log10(low))

    bottom = top + step * len(used)
    body = "".join(line(place(tick), top - 8, place(tick), bottom, width=0.4) + text(place(tick), bottom + 16, f"{tick:g}", "middle")
                   for tick in powers(low, high))
    body += line(place(1), top - 12, place(1), bottom, BLUE, 1.6) + text(place(1), 11, "the goal", "middle")
    for number, (what, values, holds) in enumerate(used):
        y, color = top + step * number + 8, GOOD if holds else BAD
        middle = values[len(values) // 2] if len(values) % 2 else (values[len(values) // 2 - 1] + values[len(values) // 2]) / 2
        body += text(left - 12, y + 4, what.replace("`", ""), "end")
        body += line(place(values[0]), y, place(values[-1]), y, color, 3)
        body += f'<circle cx="{place(middle):.1f}" cy="{y:.1f}" r="4.5" fill="{color}"/>\n'
    return svg(width, bottom + 26, body, "How much of each goal is used up")


def latencies(points):
    """`points`: (requested rate per second, p50 and p99 in milliseconds), one for each second of a run whose rate rises."""
    left, right, top, bottom, width, height = 60, 20, 30, 44, 760, 320
    high_x = max(rate for rate, _, _ in points) * 1.05
    values = [value for _, p50, p99 in points for value in (p50, p99) if value > 0]
    low, high = min(values) * 0.8, max(values) * 1.25

    def x(rate):
        return left + (width - left - right) * rate / high_x

    def y(value):
        return top + (height - top - bottom) * (log10(high) - log10(value)) / (log10(high) - log10(low))

    body = "".join(line(left, y(tick), width - right, y(tick), width=0.4) + text(left - 6, y(tick) + 4, f"{tick:g}", "end")
                   for tick in powers(low, high))
    for rate in sorted({rate for rate, _, _ in points}):
        body += text(x(rate), height - bottom + 18, f"{rate:,.0f}", "middle")
    body += text(left, 16, "response time in milliseconds: p50 below, p99 above")
    body += text((left + width) / 2, height - 6, "requests a second, asked for", "middle")
    for rate, p50, p99 in points:
        for value, color in [(p50, BLUE), (p99, BAD)]:
            if value > 0:
                body += f'<circle cx="{x(rate):.1f}" cy="{y(value):.1f}" r="3.5" fill="{color}" fill-opacity="0.7"/>\n'
    return svg(width, height, body, "Response time against rate")

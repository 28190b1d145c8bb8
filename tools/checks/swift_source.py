"""Reads Swift just closely enough for the checks: what is code, what is imported, how long a function is."""
import re
from bisect import bisect_left
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

IMPORT = re.compile(
    r"(?:^|;)[ \t]*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?"
    r"import\s+(?:(?:struct|class|enum|protocol|typealias|func|let|var)\s+)?(\w+)", re.MULTILINE)
OPENING = re.compile(r'//|/\*|#*"')
STRING = re.compile(r'(#*)("""|")')
COMMENT_MARK = re.compile(r"/\*|\*/")
# What counts within parentheses: they themselves, and what is stepped over.
IN_PARENTHESES = re.compile(r'[()]|//|/\*|#*"')
NOT_NEWLINE = re.compile(r"[^\n]")
BRACE = re.compile(r"[{}]")
# What can begin or end a body, or what stands before it. A declaration begins behind the end of a line.
BEFORE_BODY = re.compile(r"[()\[\]{}\n]")
# What stands before a word is looked at behind the word, because `re` finds a pattern that begins with letters ten times
# as fast: func(?<!\wfunc) is \bfunc.
FUNCTION = re.compile(r"func(?<!\wfunc)\s+([^\s(]+?)(?=[\s(<])|(init)(?<![.\w`]init)\b[?!]?(?=\s*[(<])"
                      r"|(deinit)(?<![.\w`]deinit)\b")
DECLARATION = re.compile(
    r"\n\s*(?:@|#|(?:public|package|internal|private|fileprivate|static|mutating|nonisolated|override|func|init|deinit|"
    r"var|let|case|subscript|associatedtype|typealias|struct|class|enum|actor|extension|protocol|return|if)\b)")


def swift_files(*folders):
    """The Swift files of the folders, generated ones included, in order."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.swift"))


def is_generated(path):
    return "Generated" in path.parts


@cache
def code_of(text):
    r'''The text with every comment and the inside of every string blanked; lines and columns stay.

    >>> code_of('let a = "import B" // import C')
    'let a = "        "            '
    >>> code_of('a /* x /* y */ z */ b')
    'a                   b'
    >>> code_of(r'"\(call("x // y")) // z" + c')
    '"                      " + c'
    >>> code_of('#"a " \\(b"# c')
    '#"       "# c'
    >>> code_of('"""\nA "b"\n""" c')
    '"""\n     \n""" c'
    '''
    kept, position = [], 0
    while match := OPENING.search(text, position):
        start = match.start()
        kept.append(text[position:start])
        position = comment_end(text, start)
        if position:
            kept.append(blank(text[start:position]))
        else:
            position = string_end(text, start)
            fence = STRING.match(text, start).group()
            inside = start + len(fence)
            # The string that the end of the file ends may be shorter than two fences.
            end = max(inside, position - len(fence))
            kept += [fence, blank(text[inside:end]), text[end:position]]
    return "".join(kept) + text[position:]


def blank(text):
    """Spaces instead of the text; its lines stay."""
    return NOT_NEWLINE.sub(" ", text) if "\n" in text else " " * len(text)


def comment_end(text, start):
    """Where the comment that starts here ends, or None if none starts here."""
    if text.startswith("//", start):
        end = text.find("\n", start)
        return len(text) if end < 0 else end
    if not text.startswith("/*", start):
        return None
    depth = 0
    for mark in COMMENT_MARK.finditer(text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def string_end(text, start):
    """Where the string literal that starts here ends, or None if none starts here."""
    opening = STRING.match(text, start)
    if not opening:
        return None
    hashes, quotes = opening.groups()
    position, stop = opening.end(), string_stop(hashes, quotes)
    while match := stop.search(text, position):
        position = match.end()
        if match.group().startswith('"'):
            return position
        position = parentheses_end(text, position) if text.startswith("(", position) else position + 1
    return len(text)


@cache
def string_stop(hashes, quotes):
    """Finds where a string ends, or where an escape or an interpolation begins in it."""
    return re.compile(re.escape(quotes + hashes) + "|" + re.escape("\\" + hashes))


def parentheses_end(text, start):
    """Where the parenthesis that opens here is closed: strings and comments inside are stepped over.

    >>> parentheses_end('(a(")") /* ) */ b) c', 0)
    18
    """
    depth, position = 0, start
    while match := IN_PARENTHESES.search(text, position):
        position = match.end()
        if match.group() == "(":
            depth += 1
        elif match.group() == ")":
            depth -= 1
            if depth == 0:
                return position
        else:
            position = comment_end(text, match.start()) or string_end(text, match.start())
    return len(text)


def imports(code):
    """The modules that code imports.

    >>> imports("import A\\npublic import B; import C\\n@testable import struct D.E\\nlet importance = 1")
    ['A', 'B', 'C', 'D']
    """
    # The pattern finds slowly that nothing follows. So it does not look behind the last "import".
    found, position, last = [], 0, code.rfind("import")
    while position <= last and (match := IMPORT.search(code, position)):
        found.append(match.group(1))
        position = match.end()
    return found


def functions(code):
    """Name, first line and number of lines of every function with a body. Approximate: it counts brackets.

    >>> functions("func a(_ f: () -> Int = { 1 }) -> Int {\\n if x { y() }\\n}\\ninit?(b: Int) {}")
    [('a', 1, 3), ('init', 4, 1)]
    >>> functions("protocol P {\\n func a()\\n func b() {\\n }\\n}\\nlet c = self.init(d) { }")
    [('b', 3, 2)]
    """
    found, line_ends = [], [match.start() for match in re.finditer("\n", code)]
    for match in FUNCTION.finditer(code):
        body = body_start(code, match.end())
        if body is not None:
            # An end of a line belongs to the line that it ends.
            first = bisect_left(line_ends, match.start()) + 1
            last = bisect_left(line_ends, braces_end(code, body)) + 1
            found.append((next(filter(None, match.groups())), first, last - first + 1))
    return found


def body_start(code, position):
    """The brace that opens the body of the function whose name ends here, or None for a mere requirement."""
    depth = 0
    for match in BEFORE_BODY.finditer(code, position):
        character = match.group()
        depth += (character in "([") - (character in ")]")
        if depth == 0 and character == "{":
            return match.start()
        if depth < 0 or depth == 0 and (character == "}" or DECLARATION.match(code, match.start())):
            return None
    return None


def braces_end(code, start):
    depth = 0
    for brace in BRACE.finditer(code, start):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.start()
    return len(code)

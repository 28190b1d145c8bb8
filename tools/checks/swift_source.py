"""Reads Swift just closely enough for the checks: what is code, what is imported, how long a function is."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

IMPORT = re.compile(
    r"(?:^|;)[ \t]*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?"
    r"import\s+(?:(?:struct|class|enum|protocol|typealias|func|let|var)\s+)?(\w+)", re.MULTILINE)
OPENING = re.compile(r'//|/\*|#*"')
STRING = re.compile(r'(#*)("""|")')
FUNCTION = re.compile(r"\bfunc\s+([^\s(]+?)(?=[\s(<])|(?<![.\w`])(init)\b[?!]?(?=\s*[(<])|(?<![.\w`])(deinit)\b")
DECLARATION = re.compile(
    r"\n\s*(?:@|#|(?:public|package|internal|private|fileprivate|static|mutating|nonisolated|override|func|init|deinit|"
    r"var|let|case|subscript|associatedtype|typealias|struct|class|enum|actor|extension|protocol|return|if)\b)")


def swift_files(*folders):
    """The Swift files of the folders, generated ones included, in order."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.swift"))


def is_generated(path):
    return "Generated" in path.parts


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
    out = list(text)
    position = 0
    while match := OPENING.search(text, position):
        position = comment_end(text, match.start())
        if position:
            blank(out, match.start(), position)
        else:
            position = string_end(text, match.start())
            fence = len(STRING.match(text, match.start()).group())
            blank(out, match.start() + fence, position - fence)
    return "".join(out)


def blank(out, start, end):
    for index in range(start, end):
        if out[index] != "\n":
            out[index] = " "


def comment_end(text, start):
    """Where the comment that starts here ends, or None if none starts here."""
    if text.startswith("//", start):
        end = text.find("\n", start)
        return len(text) if end < 0 else end
    if not text.startswith("/*", start):
        return None
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, start):
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
    position = opening.end()
    while position < len(text):
        if text.startswith("\\" + hashes, position):
            position += 1 + len(hashes)
            position = parentheses_end(text, position) if text.startswith("(", position) else position + 1
        elif text.startswith(quotes + hashes, position):
            return position + len(quotes) + len(hashes)
        else:
            position += 1
    return len(text)


def parentheses_end(text, start):
    """Where the parenthesis that opens here is closed: strings and comments inside are stepped over."""
    depth, position = 0, start
    while position < len(text):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position + 1
        position = comment_end(text, position) or string_end(text, position) or position + 1
    return len(text)


def imports(code):
    """The modules that code imports.

    >>> imports("import A\\npublic import B; import C\\n@testable import struct D.E\\nlet importance = 1")
    ['A', 'B', 'C', 'D']
    """
    return [match.group(1) for match in IMPORT.finditer(code)]


def functions(code):
    """Name, first line and number of lines of every function with a body. Approximate: it counts brackets.

    >>> functions("func a(_ f: () -> Int = { 1 }) -> Int {\\n if x { y() }\\n}\\ninit?(b: Int) {}")
    [('a', 1, 3), ('init', 4, 1)]
    >>> functions("protocol P {\\n func a()\\n func b() {\\n }\\n}\\nlet c = self.init(d) { }")
    [('b', 3, 2)]
    """
    found = []
    for match in FUNCTION.finditer(code):
        body = body_start(code, match.end())
        if body is not None:
            first = code.count("\n", 0, match.start()) + 1
            last = code.count("\n", 0, braces_end(code, body)) + 1
            found.append((next(filter(None, match.groups())), first, last - first + 1))
    return found


def body_start(code, position):
    """The brace that opens the body of the function whose name ends here, or None for a mere requirement."""
    depth = 0
    while position < len(code):
        character = code[position]
        depth += (character in "([") - (character in ")]")
        if depth == 0 and character == "{":
            return position
        if depth < 0 or depth == 0 and (character == "}" or DECLARATION.match(code, position)):
            return None
        position += 1
    return None


def braces_end(code, start):
    depth = 0
    for brace in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.start()
    return len(code)

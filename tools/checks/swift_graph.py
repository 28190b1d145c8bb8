"""Reads from Swift sources which file uses which: by the types it names, and by the functions it calls.

This is close enough for a picture, but not a compiler: it reads names and does not infer types. The comments of its
functions say when it takes a name in two places for the same thing.
"""
import re
from collections import defaultdict

from swift_source import ROOT, braces_end, code_of, parentheses_end, swift_files

TYPE = re.compile(r"(?<![.\w`])(struct|class|enum|actor|protocol|extension|typealias|associatedtype)[ \t]+"
                  r"(?!(?:func|var|let|subscript|override)\b)(\w+(?:\.\w+)*)")
# What stands before a name or keyword is looked at behind its letters, because `re` finds a pattern that begins with
# letters much faster: var(?<![.\w`]var) is (?<![.\w`])var.
NAME = re.compile(r"([A-Z](?<![.\w`].)\w*)((?:\.[A-Z]\w*)*)")
FUNCTION = re.compile(r"(?:func(?<![.\w`]func)\s+(`?\w+`?)|(init)(?<![.\w`]init)\b[?!]?)\s*(?:<[^>()]*>)?\s*(?=\()")
COMPUTED = re.compile(r"var(?<![.\w`]var)\s+(\w+)\s*:\s*([^={}\n]+?)\s*\{")
TYPED = re.compile(r"(?<![.\w`])(\w+)\s*:\s*(?:(?:borrowing|consuming|inout|isolated|any|some|sending)\s+)*([A-Z]\w*)")
MADE = re.compile(r"(?:let|var)(?<![.\w`]...)\s+(\w+)\s*=\s*(?:try[?!]?\s+)?(?:await\s+)?([A-Z]\w*)\(")
CALL = re.compile(r"(\.)?(?<!\w)([A-Za-z_]\w*)(?=(\(| \{)?)")
BETWEEN_PARTS = re.compile(r"[()\[\]{},]")
RECEIVER = re.compile(r"(\w+)(?:\([^()]*\))?[?!]?\s*$")
# Names that the standard library has as well. A call of such a name is followed only where the receiver's type is known.
COMMON = set("""append remove removeAll removeFirst removeLast insert first last map compactMap filter contains count
    isEmpty sorted reduce forEach min max next description hash index prefix suffix split reserve value values keys
    withLock load store add subtract capacity bytes string data copy reset start stop close open read write run get set
    update make send receive wait cancel finish end fail check string text lines name id key kind state result
    error""".split())


class File:
    """One Swift file: the types and functions it declares, and its code."""

    def __init__(self, path, target):
        self.path, self.target = path.relative_to(ROOT), target
        self.code = code_of(path.read_text())
        self.types = {}      # qualified name -> is it declared here (False: extended)
        self.functions = []
        spans = list(self._types())
        for match in FUNCTION.finditer(self.code):
            self._function(match, spans)
        for match in COMPUTED.finditer(self.code):
            body = self.code.index("{", match.end() - 1)
            self.functions.append(
                Function(self, owner(spans, match.start()), match.group(1), None, body, braces_end(self.code, body)))

    @property
    def folder(self):
        """The folder inside the target; empty for the target's own."""
        parts = self.path.parts[2:-1]
        return parts[0] if parts else ""

    def _types(self):
        """The extent and the qualified name of each type and extension, outer ones first."""
        spans = []
        for match in TYPE.finditer(self.code):
            kind, name = match.groups()
            outer = owner(spans, match.start())
            qualified = f"{outer}.{name}" if outer else name
            if kind in ("typealias", "associatedtype"):
                if kind == "typealias":
                    self.types.setdefault(qualified, True)
                continue
            start = self.code.find("{", match.end())
            if start >= 0:
                spans.append((start, braces_end(self.code, start), qualified))
                self.types[qualified] = self.types.get(qualified, False) or kind != "extension"
        return spans

    def _function(self, match, spans):
        end = parentheses_end(self.code, match.end())
        body = re.compile(r"[^{}\n]*(?:\n[^{}\n]*){0,6}?\{").match(self.code, end)
        if not body or re.search(r"\n\s*(?:\w+ )*(?:func|init|var|let|case|static)\b", body.group()):
            return
        self.functions.append(Function(
            self, owner(spans, match.start()), (match.group(1) or match.group(2)).strip("`"),
            parameters(self.code[match.end() + 1:end - 1]), match.end(), braces_end(self.code, body.end() - 1)))


class Function:
    """A function with a body, or a computed property, whose `labels` is None."""

    def __init__(self, file, type_name, name, labels, start, end):
        self.file, self.type, self.name, self.labels = file, type_name, name, labels
        self.start, self.end = start, end

    def __repr__(self):
        return f"{self.type or self.file.target}.{self.name}"

    def takes(self, labels):
        """Whether a call with these labels can call this function: only parameters with a default may be missing.

        >>> Function(None, "", "f", [("a", False), ("_", True), ("b", True)], 0, 0).takes(["a", "b"])
        True
        >>> Function(None, "", "f", [("a", False), ("_", True)], 0, 0).takes(["_"])
        False
        """
        rest = list(labels)
        for label, has_default in self.labels:
            if rest and rest[0] == label:
                rest.pop(0)
            elif not has_default:
                return False
        return not rest


def owner(spans, position):
    return next((name for start, end, name in reversed(spans) if start < position < end), "")


def parts(text):
    """A parameter or argument list, split at its own commas.

    >>> parts("a: [b, c], d: (e, f) -> g")
    ['a: [b, c]', ' d: (e, f) -> g']
    """
    found, depth, start = [], 0, 0
    for match in BETWEEN_PARTS.finditer(text):
        character = match.group()
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            found.append(text[start:match.start()])
            start = match.end()
    return [*found, text[start:]] if text[start:].strip() else found


def parameters(text):
    """Each parameter's label, and whether a call may leave it out: it has a default, or is a trailing closure.

    >>> parameters("_ a: Int, b c: Int = 1, _ body: () -> Void")
    [('_', False), ('b', True), ('_', True)]
    """
    return [(re.match(r"\s*(?:@\w+(?:\([^)]*\))?\s+)*(\w+)", part).group(1), "=" in part or "->" in part)
            for part in parts(text) if re.match(r"\s*(?:@\w+(?:\([^)]*\))?\s+)*\w", part)]


def labels(text):
    """The labels of a call's arguments.

    >>> labels("a, b: c(d: 1), e ? f : g")
    ['_', 'b', '_']
    """
    return [match.group(1) if (match := re.match(r"\s*(\w+)\s*:(?!:)", part)) else "_" for part in parts(text)]


class Sources:
    """The files of all targets. `below` are the targets that each may use."""

    def __init__(self, below, folders):
        self.below = below
        self.files = [File(path, target) for target in below for path in swift_files(folders[target])]
        self.declared = defaultdict(list)    # type -> files that declare it
        self.seen = {}                       # (type, target) -> what file_of found
        self.functions = defaultdict(list)   # name -> functions
        self.initializers = defaultdict(list)    # name of a type, without outer ones -> its initializers
        self.called = {}                     # function -> what `calls` found
        self.types_of = defaultdict(set)     # name of a value -> types that anything of that name has
        for file in self.files:
            for name, is_declared in file.types.items():
                if is_declared:
                    self.declared[name].append(file)
            for function in file.functions:
                self.functions[function.name].append(function)
                if function.name == "init":
                    self.initializers[function.type.split(".")[-1]].append(function)
            for pattern in (TYPED, MADE):
                for name, type_name in pattern.findall(file.code):
                    self.types_of[name].add(type_name)

    def file_of(self, name, user):
        """The file that declares a type, as `user` sees it: a file of its own target comes before those of targets below."""
        if (name, user.target) not in self.seen:
            files = [file for file in self.declared.get(name, ())
                     if file.target == user.target or file.target in self.below[user.target]]
            own = [file for file in files if file.target == user.target]
            self.seen[name, user.target] = (own or files or [None])[0]
        return self.seen[name, user.target]

    def used_by(self, file):
        """The files whose types this one names. A nested type counts where its outer type is named or extended too."""
        used = set()
        for name, inner in {match.groups() for match in NAME.finditer(file.code)}:
            if found := self.file_of(name, file):
                used.add(found)
            for outer in file.types:
                if found := self.file_of(f"{outer}.{name}", file):
                    used.add(found)
            for part in inner.split(".")[1:]:
                name += "." + part
                if found := self.file_of(name, file):
                    used.add(found)
        return used - {file}

    def calls(self, function):
        """The functions that a function calls or, as properties, reads.

        A call is followed to the function with its name and labels in the receiver's type. Any type that a value with
        the receiver's name has anywhere counts as that type. Where no type is known, a call is followed if a single file
        has such a function. Calls through a protocol or a closure are not followed.
        """
        if function not in self.called:
            self.called[function] = self._calls(function)
        return self.called[function]

    def _calls(self, function):
        code, found = function.file.code, []
        for match in CALL.finditer(code, function.start, function.end):
            dot, name, is_call = match.groups()
            if name not in self.functions and not name[0].isupper():
                continue
            before = RECEIVER.search(code, max(0, match.start() - 80), match.start()) if dot else None
            receiver = before.group(1) if before else None
            given = labels(code[match.end() + 1:parentheses_end(code, match.end()) - 1]) if is_call == "(" else None
            found += self._callees(function, receiver, dot, name, given)
            if is_call == " {":  # a call with nothing but a trailing closure, or the condition of a statement
                found += self._callees(function, receiver, dot, name, [])
        return found

    def _callees(self, function, receiver, dot, name, given):
        user = function.file
        if name[0].isupper():
            return self._made(user, name, given) if given else []
        fitting = [other for other in self.functions.get(name, ())
                   if (other.file.target == user.target or other.file.target in self.below[user.target])
                   and (other.labels is None) == (given is None) and (given is None or other.takes(given))]
        if not fitting:
            return []
        if receiver is None and dot is None or receiver in ("self", "Self"):
            own = [other for other in fitting if other.type.split(".")[0] == function.type.split(".")[0]]
            free = [other for other in fitting if not other.type]
            return own or free
        types = {receiver} if receiver and receiver[0].isupper() else self.types_of.get(receiver, set())
        known = [other for other in fitting if other.type.split(".")[-1] in types]
        if known:
            return known if len({other.file for other in known}) == 1 else []
        is_single = given is not None and name not in COMMON and len({other.file for other in fitting}) == 1
        return fitting if is_single else []

    def _made(self, user, name, given):
        """The initializer; for a type without a written one, a stand-in in the file of the type."""
        file = self.file_of(name, user)
        if file is None:
            return []
        written = [other for other in self.initializers.get(name, ())
                   if (other.file.target == user.target or other.file.target in self.below[user.target])
                   and other.takes(given)]
        return written or [Function(file, name, "init", [], 0, 0)]

    def walk(self, entries, closed=()):
        """The functions that a walk passes from its entries, nearest first, each with its caller.

        An entry is `Type.function`, or `Type.*` for all functions of a type. The walk does not go into the functions of
        `closed`, which must exist.
        """
        reached, queue = {}, []
        everything = [function for functions in self.functions.values() for function in functions]
        if missing := set(closed) - {repr(function) for function in everything}:
            raise LookupError(f"no function {', '.join(sorted(missing))}")
        for entry in entries:
            type_name, _, name = entry.rpartition(".")
            found = [function for function in everything
                     if repr(function) == entry or name == "*" and function.type == type_name]
            if not found:
                raise LookupError(f"no function {entry}")
            queue += [(function, None) for function in found]
        while queue:
            function, caller = queue.pop(0)
            if (function.file, function.name, function.start) not in reached:
                reached[(function.file, function.name, function.start)] = (function, caller)
                queue += [(callee, function) for callee in self.calls(function) if repr(callee) not in closed]
        return list(reached.values())


def circles(graph):
    """The strongly connected parts of a graph with more than one member, largest first (Tarjan).

    >>> circles({1: {2}, 2: {3}, 3: {1}, 4: {1}})
    [[1, 2, 3]]
    """
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(root):
        work = [(root, iter(sorted(graph.get(root, ()), key=str)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, edges = work[-1]
            for other in edges:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(sorted(graph.get(other, ()), key=str))))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        on.discard(part[-1])
                    if len(part) > 1:
                        found.append(sorted(part, key=str))

    for node in sorted(graph, key=str):
        if node not in index:
            visit(node)
    return sorted(found, key=lambda part: (-len(part), str(part[0])))

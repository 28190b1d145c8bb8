#!/usr/bin/env python3
"""Compiles every block of Python in README.md and docs/*.md, and checks each call of the package's client in them: the
method has to be in proto/, and its request has to have the fields that the call names.

Nothing is executed. The calls are those of the form `client.users.get(tenant_id=…)`.
"""
import ast
import keyword
import re
import sys

from commands import PAGES, ROOT, blocks

# What each call takes beside the fields of its request.
OPTIONS = {"idempotency_key", "metadata", "timeout"}


def snake(name):
    """
    >>> snake("SignInWithIdp"), snake("EmailConfigs"), snake("Import")
    ('sign_in_with_idp', 'email_configs', 'import_')
    """
    made = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return made + "_" if keyword.iskeyword(made) else made


def published(text):
    """The fields of each message, and the requests of each service's methods.

    >>> message = "message A {\\n  repeated string b = 1;\\n  oneof x {\\n    C c = 2;\\n  }\\n}\\n"
    >>> found = published(message + "service D {\\n  rpc Get(A) r")
    >>> found == ({"A": {"b", "c"}}, {"d": {"get": "A"}})
    True
    """
    messages, services, place = {}, {}, None
    for line in text.splitlines():
        if head := re.match(r"message (\w+) \{", line):
            place = messages.setdefault(head.group(1), set())
        elif head := re.match(r"service (\w+) \{", line):
            place = services.setdefault(snake(head.group(1)), {})
        elif line.startswith("}"):
            place = None
        elif isinstance(place, set) and (field := re.match(r"\s+(?:\w+ )?[\w.<>, ]+ (\w+) = \d+", line)):
            place.add(field.group(1))
        elif isinstance(place, dict) and (method := re.match(r"  rpc (\w+)\((?:stream )?([\w.]+)\)", line)):
            place[snake(method.group(1))] = method.group(2)
    return messages, services


def faults(source, messages, services):
    """
    >>> api = ({"A": {"b"}}, {"users": {"get": "A"}})
    >>> list(faults("client.users.get(b=1, timeout=2)\\nclient.users.got()\\nclient.users.get(c=1)", *api))
    ['2: there is no method users.got', '3: the request of users.get has no field c']
    >>> list(faults("if:", *api))
    ['1: invalid syntax']
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        yield f"{error.lineno}: {error.msg}"
        return
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        words = ast.unparse(call.func).split(".")
        if len(words) < 3 or words[-3] != "client" or words[-2] not in services:
            continue
        service, method = words[-2:]
        request = services[service].get(method)
        if request is None:
            yield f"{call.lineno}: there is no method {service}.{method}"
            continue
        for name in (argument.arg for argument in call.keywords if argument.arg):
            if name not in messages[request] | OPTIONS:
                yield f"{call.lineno}: the request of {service}.{method} has no field {name}"


def main():
    protos = sorted(ROOT.glob("proto/postern/v1/*.proto"))
    messages, services = published("\n".join(path.read_text() for path in protos))
    found, count = [], 0
    for page in PAGES:
        for block in (block for block in blocks(page.read_text()) if block.language == "python"):
            count += 1
            found += [f"{page.relative_to(ROOT)}:{block.line}: line {fault}"
                      for fault in faults("\n".join(block.lines), messages, services)]
    print(*found, sep="\n", end="\n" if found else "")
    if not count:
        sys.exit("no page has a block of Python")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()

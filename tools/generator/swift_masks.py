"""Sources/Messages/Generated/UpdatePaths.swift: what the `update_mask` of a request may name, one type per message."""

from pathlib import Path

from .naming import escaped, lower_camel
from .schema import Message, SchemaError
from .swift_values import header

MASK = "google.protobuf.FieldMask"


def write(schema, folder):
    lines = header("the fields marked (updatable) in proto/", ["public import Base"])
    used = set()
    for target, is_request in _targets(schema):
        paths = list(_paths(target, [], used))
        lines += [*_path_type(target, paths), ""]
        if not is_request:
            lines += [*_copy(target, paths), ""]
    for message in schema.all_messages():
        for field in message.fields:
            if field.updatable and (message.full_name, field.name) not in used:
                raise SchemaError(f"{message.full_name}.{field.name}: is updatable, but no update_mask reaches it")
    (Path(folder) / "UpdatePaths.swift").write_text("\n".join(lines).rstrip("\n") + "\n")


def _targets(schema):
    """Each message that updates change, and whether it is the request itself. Where the request has no updatable field,
    it is the message inside the request that has them. Where it has some, each message in it that paths lead into is a
    target as well: nothing is kept in the form of such a request, so these paths are applied to the inner message."""
    found = {}
    for request in schema.all_messages():
        if not any(field.target_name == MASK for field in request.fields):
            continue
        if any(field.updatable for field in request.fields):
            found[request.full_name] = (request, True)
            found |= {field.target.full_name: (field.target, False) for field in request.fields
                      if field.updatable and _has_paths(field)}
            continue
        # A message with a mask of its own is a target by itself.
        inner = [f.target for f in request.fields if isinstance(f.target, Message)
                 and not any(g.target_name == MASK for g in f.target.fields) and list(_paths(f.target, [], set()))]
        if len(inner) != 1:
            raise SchemaError(f"{request.full_name}: which fields may update_mask name? Mark them (updatable)")
        found[inner[0].full_name] = (inner[0], False)
    return sorted(found.values(), key=lambda pair: pair[0].swift_name)


def _paths(message, above, used):
    """The fields that updates may name, each as the list of fields that leads to it."""
    for field in message.fields:
        if field.updatable:
            used.add((message.full_name, field.name))
            yield [*above, field]
        if _has_inside(field):
            yield from _paths(field.target, [*above, field], used)


def _has_inside(field):
    """Whether a path may go on behind the field."""
    return isinstance(field.target, Message) and not field.repeated and field.oneof is None


def _has_paths(field):
    return _has_inside(field) and any(_paths(field.target, [], set()))


def _case(path):
    return lower_camel("_".join(field.name for field in path))


def _path_type(target, paths):
    lines = [f"extension {target.swift_name}: Updatable {{",
             "    /// The fields that an update may change.",
             "    public enum Path: UInt8, UpdatePath {"]
    lines += [f"        case {escaped(_case(path))}" for path in paths]
    lines += ["", "        public var name: Text {", "            switch self {"]
    lines += [f'            case .{_case(path)}: "{".".join(field.name for field in path)}"' for path in paths]
    return [*lines, "            }", "        }", "", "        public static let byName = named()", "    }", "}"]


def _copy(target, paths):
    lines = [f"extension {target.swift_name}: UpdatableMessage {{",
             f"    public mutating func copy(_ path: Path, from other: {target.swift_name}) {{", "        switch path {"]
    for path in paths:
        lines.append(f"        case .{_case(path)}:")
        place, source = "self", "other"
        for field in path[:-1]:
            place += f".{field.swift_name}"
            source = f"({source}.{field.swift_name} ?? {field.target.swift_name}())"
            lines.append(f"            if {place} == nil {{ {place} = {field.target.swift_name}() }}")
            place += "?"
        lines.append(f"            {place}.{path[-1].swift_name} = {source}.{path[-1].swift_name}")
    return [*lines, "        }", "    }", "}"]

"""Sources/postern/Generated: the JSON of every message that an answer of postern.v1 can hold, as the CLI prints it.

Names are the proto's, in the order of the field numbers; integers are numbers, enums their proto names, bytes
hexadecimal, and bytes named ..._json the JSON in them. A missing message is null; of a oneof, only the member that is set
appears. A (secret) field appears in the response that hands it out, and nowhere else.
"""

from pathlib import Path

from .schema import EnumType, FieldProto, Message
from .swift_values import header, swift_type

PACKAGE = "postern.v1."


def write(schema, folder):
    folder = Path(folder)
    folder.mkdir(parents=True)
    messages, enums = _shown(schema)
    lines = header("the responses in proto/postern/v1", ["import Base", "import JSON", "import Messages"])
    for enum in enums:
        lines += [*_enum(enum), ""]
    for message in messages:
        lines += [*_message(message), ""]
    (folder / "Messages+JSON.swift").write_text("\n".join(lines).rstrip("\n") + "\n")


def _shown(schema):
    """The messages and enums that responses hold, by name."""
    messages, enums = {}, {}

    def add(message):
        if message.full_name in messages:
            return
        messages[message.full_name] = message
        for field in message.fields:
            if isinstance(field.target, Message):
                add(field.target)
            elif isinstance(field.target, EnumType):
                enums[field.target.full_name] = field.target

    for message in schema.all_messages():
        if message.full_name.startswith(PACKAGE) and message.full_name.endswith("Response"):
            add(message)
    return [messages[name] for name in sorted(messages)], [enums[name] for name in sorted(enums)]


def _enum(enum):
    lines = [f"extension Messages.{enum.swift_name} {{", "    var json: JSONValue {", "        switch self {"]
    lines += [f'        case .{case}: "{name}"' for (case, _, _), name in zip(enum.cases, enum.names)]
    return [*lines, "        }", "    }", "}"]


def _message(message):
    is_response = message.full_name.endswith("Response")
    shown = [f for f in message.fields if is_response or not f.secret]
    singular = [f for f in shown if f.oneof is None]
    lines = [f"extension Messages.{message.swift_name}: MessageJSON {{", "    var fieldsJSON: JSONValue {"]
    members = [f'            .init("{f.name}", {_field(f)}),' for f in singular]
    if any(f.oneof is not None for f in shown):
        lines += ["        var members: [JSONValue.Member] = [", *members, "        ]"] if members else \
            ["        var members: [JSONValue.Member] = []"]
        for oneof in message.oneofs:
            lines += [f"        switch self.{oneof.swift_name} {{", "        case nil: break"]
            for f in oneof.fields:
                if f.secret and not is_response:
                    lines.append(f"        case .{f.swift_name}: break")
                else:
                    value = _value(f, "value")
                    lines.append(f"        case .{f.swift_name}(let value): "
                                 f'members.append(.init("{f.name}", {value}))')
            lines.append("        }")
        return [*lines, "        return .object(members)", "    }", "}"]
    return [*lines, "        .object([", *members, "        ])", "    }", "}"]


def _field(field):
    name = f"self.{field.swift_name}"
    if field.repeated:
        return f".array({name}.map {{ {_value(field, '$0')} }})"
    if isinstance(field.target, Message):
        return f"{name}?.json ?? .null"
    return _value(field, name)


def _value(field, value):
    if isinstance(field.target, (Message, EnumType)):
        return f"{value}.json"
    if field.type == FieldProto.TYPE_BYTES and field.name.endswith("_json"):
        return f".parsed({value})"
    if field.secret:
        return f".handedOut({value})"
    kind = swift_type(field)
    return {"Text": ".string({})", "Bool": ".bool({})", "Int64": ".integer({})", "[UInt8]": ".hexadecimal({})",
            "Double": ".number({})", "Int32": ".integer(Int64({}))", "UInt32": ".integer(Int64({}))"}[kind].format(value)

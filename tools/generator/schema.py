"""Reads the .proto files through protoc and holds them as a small model; refuses what Postern does not allow.

It refuses proto3 optional (protoc-c 1.4 does not support it), groups, messages that contain themselves (protobuf-c has no
recursion limit), enums without a zero or with values above 1023, field numbers above 255, more than 64 singular fields in
a message (the pre-scan keeps them in one word), and two types with one Swift name.
"""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from . import naming

SYSTEM_INCLUDE = "/usr/include"
FieldProto = descriptor_pb2.FieldDescriptorProto


class SchemaError(Exception):
    pass


@dataclass
class EnumType:
    full_name: str
    swift_name: str
    doc: str
    # (Swift case, number, doc)
    cases: list
    # The proto's names, in the order of the cases.
    names: list
    c_type: str

    @property
    def mask(self):
        return sum(1 << number for _, number, _ in self.cases)


@dataclass
class Field:
    name: str
    swift_name: str
    number: int
    # TYPE_STRING … of descriptor.proto
    type: int
    repeated: bool
    secret: bool
    # An update may change it.
    updatable: bool
    # Index into Message.oneofs, or None.
    oneof: int | None
    doc: str
    # The message or enum it holds, filled once all types are known.
    target_name: str
    target: object = None


@dataclass
class Oneof:
    name: str
    swift_name: str
    type_name: str
    doc: str
    fields: list = field(default_factory=list)


@dataclass
class Message:
    full_name: str
    swift_name: str
    doc: str
    fields: list
    oneofs: list
    messages: list
    enums: list
    c_type: str
    c_lower: str
    is_map_entry: bool

    def nested(self):
        """This message and the ones inside it, innermost first."""
        for inner in self.messages:
            yield from inner.nested()
        yield self

    @property
    def holds_secret(self):
        return any(f.secret or (isinstance(f.target, Message) and f.target.holds_secret) for f in self.fields)


@dataclass
class Method:
    name: str
    doc: str
    request: Message
    response: Message
    client_streaming: bool
    server_streaming: bool
    # (field of MethodRule, its Swift literal), in the order of the field numbers
    rule: list
    idempotent: bool
    # Why the method has neither a command nor a function of PosternAdmin; empty if it has what its callers are offered.
    stub_only: str
    # Why a mutation for administrators takes no validate_only; empty if it takes it, and for all other methods.
    no_validate_only: str
    # Why a mutation keeps no record of its idempotency-key; empty if it keeps one, and for methods that change nothing.
    no_idempotency_key: str


@dataclass
class Reason:
    name: str
    swift_name: str
    number: int
    doc: str
    # (number, gRPC's name), the usual one first.
    statuses: list
    auth_code: str
    client_only: bool


@dataclass
class Service:
    full_name: str
    name: str
    doc: str
    methods: list


@dataclass
class File:
    path: str
    package: str
    messages: list
    enums: list
    services: list

    def all_messages(self):
        for message in self.messages:
            yield from message.nested()


class Schema:
    """All files of `proto_folder` and what they import, dependencies first."""

    def __init__(self, proto_folder):
        folder = Path(proto_folder)
        # public/ is made from the others.
        paths = sorted(str(p.relative_to(folder)) for p in folder.rglob("*.proto") if folder / "public" not in p.parents)
        arguments = ["protoc", f"-I{proto_folder}", f"-I{SYSTEM_INCLUDE}", "--include_imports",
                     "--include_source_info", "--descriptor_set_out=/dev/stdout", *paths]
        serialized = subprocess.run(arguments, check=True, stdout=subprocess.PIPE).stdout
        self.descriptors = descriptor_pb2.FileDescriptorSet.FromString(serialized)
        self._options = _OptionReader(self.descriptors)
        self._types = {}
        self.files = [self._read_file(f) for f in self.descriptors.file if not _only_options(f)]
        self.reasons = self._read_reasons()
        self.statuses = self._options.statuses()
        self._link()
        self._check()

    def all_messages(self):
        for file in self.files:
            yield from file.all_messages()

    # Reading

    def _read_file(self, proto):
        if proto.package not in naming.TYPE_PREFIX:
            raise SchemaError(f"{proto.name}: package {proto.package} has no Swift prefix (naming.py)")
        docs = {tuple(l.path): l for l in proto.source_code_info.location}
        short = proto.name.startswith("google/protobuf/")

        def doc(*path):
            text = docs[path].leading_comments.rstrip() if path in docs else ""
            lines = [line[1:] if line.startswith(" ") else line for line in text.split("\n")]
            text = "\n".join(line.rstrip() for line in lines).strip("\n")
            return text.split("\n\n")[0] if short else text

        enums = [self._read_enum(e, proto.package, [], doc, (5, i)) for i, e in enumerate(proto.enum_type)]
        messages = [self._read_message(m, proto.package, [], doc, (4, i)) for i, m in enumerate(proto.message_type)]
        services = [(s, doc, (6, i)) for i, s in enumerate(proto.service)]
        return File(proto.name, proto.package, messages, enums, services)

    def _read_enum(self, proto, package, outer, doc, path):
        full_name = ".".join([package, *outer, proto.name])
        cases = [(naming.enum_case(proto.name, v.name), v.number, doc(*path, 2, i)) for i, v in enumerate(proto.value)]
        numbers = [number for _, number, _ in cases]
        if numbers[0] != 0 or min(numbers) < 0 or max(numbers) > 1023 or len(set(numbers)) != len(numbers):
            raise SchemaError(f"{full_name}: values must start at 0, lie in 0..1023 and differ")
        result = EnumType(full_name, naming.swift_type_path(package, [*outer, proto.name]), doc(*path), cases,
                          [v.name for v in proto.value], naming.c_type(full_name))
        self._types[full_name] = result
        return result

    def _read_reasons(self):
        """The values of postern.v1.Reason except the zero, each with the contents of its option (refusal)."""
        found = []
        for file in self.descriptors.file:
            docs = {tuple(l.path): l.leading_comments for l in file.source_code_info.location}
            for i, enum in enumerate(file.enum_type):
                if f"{file.package}.{enum.name}" != "postern.v1.Reason":
                    continue
                for j, value in enumerate(enum.value):
                    if value.number == 0:
                        continue
                    doc = " ".join(line.strip() for line in docs.get((5, i, 2, j), "").split("\n")).strip()
                    statuses, auth_code, client_only = self._options.refusal(value.name)
                    if not doc or not statuses:
                        raise SchemaError(f"reason {value.name}: needs a comment and a status")
                    found.append(Reason(value.name, naming.lower_camel(value.name), value.number, doc, statuses,
                                        auth_code, client_only))
        if len({r.swift_name for r in found}) != len(found):
            raise SchemaError("two reasons have one Swift name")
        return found

    def _read_message(self, proto, package, outer, doc, path):
        full_name = ".".join([package, *outer, proto.name])
        inner = [*outer, proto.name]
        enums = [self._read_enum(e, package, inner, doc, (*path, 4, i)) for i, e in enumerate(proto.enum_type)]
        messages = [self._read_message(m, package, inner, doc, (*path, 3, i)) for i, m in enumerate(proto.nested_type)]
        oneofs = [Oneof(o.name, naming.lower_camel(o.name), naming.upper_camel(o.name), doc(*path, 8, i))
                  for i, o in enumerate(proto.oneof_decl)]
        fields = []
        for i, f in enumerate(proto.field):
            where = f"{full_name}.{f.name}"
            if f.proto3_optional or f.type == FieldProto.TYPE_GROUP or f.label == FieldProto.LABEL_REQUIRED:
                raise SchemaError(f"{where}: proto3 optional, groups and required fields are not supported")
            if f.number > 255:
                raise SchemaError(f"{where}: field numbers end at 255")
            secret = self._options.is_marked("secret", full_name, f.name)
            if secret and f.type not in (FieldProto.TYPE_STRING, FieldProto.TYPE_BYTES):
                raise SchemaError(f"{where}: only string and bytes fields can be secret")
            one = Field(f.name, naming.lower_camel(f.name), f.number, f.type, f.label == FieldProto.LABEL_REPEATED,
                        secret, self._options.is_marked("updatable", full_name, f.name),
                        f.oneof_index if f.HasField("oneof_index") else None, doc(*path, 2, i),
                        f.type_name.lstrip("."))
            fields.append(one)
            if one.oneof is not None:
                oneofs[one.oneof].fields.append(one)
        result = Message(full_name, naming.swift_type_path(package, inner), doc(*path),
                         sorted(fields, key=lambda f: f.number), oneofs, messages, enums, naming.c_type(full_name),
                         naming.c_lower(full_name), proto.options.map_entry)
        self._types[full_name] = result
        return result

    def _link(self):
        for message in self.all_messages():
            for f in message.fields:
                if f.target_name:
                    if f.target_name not in self._types:
                        raise SchemaError(f"{message.full_name}.{f.name}: {f.target_name} is not generated")
                    f.target = self._types[f.target_name]
        for file in self.files:
            file.services = [self._read_service(s, file.package, doc, path) for s, doc, path in file.services]

    def _read_service(self, proto, package, doc, path):
        full_name = f"{package}.{proto.name}"
        methods = []
        for i, m in enumerate(proto.method):
            rule, idempotent = self._options.rule(full_name, m.name)
            methods.append(Method(m.name, doc(*path, 2, i), self._types[m.input_type[1:]],
                                  self._types[m.output_type[1:]], m.client_streaming, m.server_streaming, rule,
                                  idempotent, self._options.text("stub_only", full_name, m.name),
                                  self._options.text("no_validate_only", full_name, m.name),
                                  self._options.text("no_idempotency_key", full_name, m.name)))
        return Service(full_name, proto.name, doc(*path), methods)

    # Checking

    def _check(self):
        names = {}
        for full_name, one in self._types.items():
            other = names.setdefault(one.swift_name, full_name)
            if other != full_name:
                raise SchemaError(f"{full_name} and {other} are both {one.swift_name} in Swift")
        for message in self.all_messages():
            self._check_recursion(message, [])
            if len({f.swift_name for f in message.fields} | {o.swift_name for o in message.oneofs}) != \
                    len(message.fields) + len(message.oneofs):
                raise SchemaError(f"{message.full_name}: two fields have one Swift name")
            for f in message.fields:
                if f.swift_name in ("schema", "encodedByteCount"):
                    raise SchemaError(f"{message.full_name}.{f.name}: the generated code needs this name")
            for oneof in message.oneofs:
                if oneof.type_name in names or f"{message.swift_name}.{oneof.type_name}" in names:
                    raise SchemaError(f"{message.full_name}.{oneof.name}: {oneof.type_name} would hide a type")
            singular = [f for f in message.fields if not f.repeated and f.oneof is None]
            if len(singular) + len(message.oneofs) > 64:
                raise SchemaError(f"{message.full_name}: more than 64 singular fields")
        for file in self.files:
            for service in file.services:
                for method in service.methods:
                    _check_conventions(file.package, service, method)

    def _check_recursion(self, message, above):
        if message.full_name in above:
            raise SchemaError(f"{message.full_name} contains itself: {' > '.join(above)}")
        for f in message.fields:
            if isinstance(f.target, Message):
                self._check_recursion(f.target, [*above, message.full_name])


def _check_conventions(package, service, method):
    """Requests and responses have their methods' names, and lists come in pages, so that a client can guess both."""
    if package != "postern.v1":
        return
    for message, role in ((method.request, "Request"), (method.response, "Response")):
        if message.full_name != f"{package}.{service.name}{method.name}{role}":
            raise SchemaError(f"{service.full_name}.{method.name}: its {role.lower()} is called {message.full_name}")
    asked = {f.name for f in method.request.fields} & {"page_size", "page_token"}
    answered = {f.name for f in method.response.fields} & {"next_page_token"}
    if len(asked) != 2 * len(answered):
        raise SchemaError(f"{service.full_name}.{method.name}: a list has page_size, page_token and next_page_token")
    _check_validate_only(service, method)
    _check_repeats(service, method)


def _check_validate_only(service, method):
    """An admin can try every change. The methods of end users may have the field, too, but need not say why they have not."""
    rule = dict(method.rule)
    is_admins_change = rule.get("mutation") == "true" and rule.get("role") in (".tenantAdmin", ".projectAdmin")
    has_field = any(f.name == "validate_only" for f in method.request.fields)
    if is_admins_change and not has_field and not method.no_validate_only:
        raise SchemaError(f"{service.full_name}.{method.name}: its request has no validate_only, and no option "
                          "(no_validate_only) says why")
    if method.no_validate_only and (has_field or not is_admins_change):
        raise SchemaError(f"{service.full_name}.{method.name}: take the option (no_validate_only) out")


def _check_repeats(service, method):
    """Clients repeat an idempotent call by themselves, without a key. A change over an expected revision that was made
    would then be refused."""
    if method.idempotent and any(f.name == "expected_revision" for f in method.request.fields):
        raise SchemaError(f"{service.full_name}.{method.name}: with expected_revision it is not idempotent")
    if method.no_idempotency_key and dict(method.rule).get("mutation") != "true":
        raise SchemaError(f"{service.full_name}.{method.name}: take the option (no_idempotency_key) out")


def _only_options(proto):
    """Whether a file is for protoc alone: it extends descriptor.proto, or is descriptor.proto itself."""
    return proto.name == "google/protobuf/descriptor.proto" or len(proto.extension) > 0


class _OptionReader:
    """Reads the options in postern/v1/options.proto and (postern.v1.refusal), for which the pool must know the extensions."""

    def __init__(self, descriptors):
        pool = descriptor_pool.DescriptorPool()
        for file in descriptors.file:
            pool.Add(file)
        self._methods, self._refusals = {}, {}
        # (mark, message, field)
        self._marks = set()
        if not any(f.name == "postern/v1/options.proto" for f in descriptors.file):
            return
        factory = message_factory.MessageFactory(pool)
        known = factory.GetPrototype(pool.FindMessageTypeByName("google.protobuf.FileDescriptorSet"))
        for option in ("MethodRule", "Refusal"):
            factory.GetPrototype(pool.FindMessageTypeByName(f"postern.v1.{option}"))
        reread = known.FromString(descriptors.SerializeToString())
        self._rule = pool.FindExtensionByName("postern.v1.rule")
        self._texts = {name: pool.FindExtensionByName(f"postern.v1.{name}")
                       for name in ("stub_only", "no_validate_only", "no_idempotency_key")}
        self._marking = {name: pool.FindExtensionByName(f"postern.v1.{name}") for name in ("secret", "updatable")}
        refusal = pool.FindExtensionByName("postern.v1.refusal")
        self._status_type = pool.FindEnumTypeByName("postern.v1.Refusal.Status")
        for file in reread.file:
            for enum in file.enum_type:
                for value in enum.value:
                    if value.options.HasExtension(refusal):
                        self._refusals[value.name] = value.options.Extensions[refusal]
            for service in file.service:
                for method in service.method:
                    self._methods[f"{file.package}.{service.name}", method.name] = method.options
            for message in file.message_type:
                self._read_marks(message, file.package)

    def _read_marks(self, message, outer):
        full_name = f"{outer}.{message.name}"
        for one in message.field:
            self._marks |= {(mark, full_name, one.name) for mark, extension in self._marking.items()
                            if one.options.Extensions[extension]}
        for inner in message.nested_type:
            self._read_marks(inner, full_name)

    def is_marked(self, mark, message_name, field_name):
        return (mark, message_name, field_name) in self._marks

    def statuses(self):
        """gRPC's status codes as (number, name)."""
        return [(value.number, value.name) for value in self._status_type.values]

    def refusal(self, name):
        """The statuses of a reason by gRPC's names, FirebaseAuth's code, and whether only clients make it."""
        refusal = self._refusals.get(name)
        if refusal is None:
            return [], "", False
        names = dict(self.statuses())
        return [(number, names[number]) for number in refusal.status], refusal.auth_code, refusal.client_only

    def rule(self, service_name, method_name):
        """The fields of the method's rule as Swift literals, and whether the method may be sent again. A method without a
        rule (those of health have none) gets the fields of an empty one."""
        options = self._methods.get((service_name, method_name))
        if options is None:
            return [], False
        rule = options.Extensions[self._rule]
        return [(naming.lower_camel(f.name), _literal(f, getattr(rule, f.name))) for f in rule.DESCRIPTOR.fields], \
            rule.idempotent

    def text(self, option, service_name, method_name):
        """The text of one of the method's options, such as stub_only; empty without the option."""
        options = self._methods.get((service_name, method_name))
        return "" if options is None else options.Extensions[self._texts[option]]


def _literal(descriptor, value):
    if descriptor.enum_type is not None:
        name = descriptor.enum_type.values_by_number[value].name
        return "." + naming.escaped(naming.enum_case(descriptor.enum_type.name, name))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'

"""Sources/PosternClient/Generated/Stubs.swift: one struct per service with one function per method."""

from pathlib import Path

from .naming import escaped, lower_first
from .swift_values import doc_lines, header


def write(schema, folder):
    folder = Path(folder)
    folder.mkdir(parents=True)
    lines = header("the services in proto/", ["public import Base\npublic import Messages"])
    for file in schema.files:
        for service in file.services:
            lines += _service(service)
    (folder / "Stubs.swift").write_text("\n".join(lines).rstrip("\n") + "\n")


def _service(service):
    lines = [*doc_lines(f"{service.doc}\n\n{_example(service)}"), f"public struct {service.name}Client: Sendable {{",
             "    let channel: Channel", "", "    /// Creates a client whose calls go over `channel`.",
             "    public init(channel: Channel) { self.channel = channel }"]
    for method in service.methods:
        lines += ["", *doc_lines(method.doc, "    "), *_indented(_method(service, method))]
    return [*lines, "}", ""]


def _example(service):
    """An example of a first call: of a method that changes nothing, if there is one."""
    client = f"{service.name}Client(channel: channel)"
    method = min(service.methods, key=lambda method: (not method.idempotent, method.server_streaming))
    call = f"try await client.{escaped(lower_first(method.name))}"
    if method.client_streaming:
        use = f"let stream = {call}()\nstream.finish()"
    elif method.server_streaming:
        use = f"for try await message in {call}({method.request.swift_name}()) {{ print(message) }}"
    else:
        use = f"print({call}({method.request.swift_name}()))"
    return f"```swift\nlet client = {client}\n{use}\n```"


def _indented(lines):
    return ["    " + line for line in lines]


def _method(service, method):
    name = escaped(lower_first(method.name))
    request, response = method.request.swift_name, method.response.swift_name
    target = f'"{service.full_name}", "{method.name}"'
    if method.client_streaming:
        return [
            f"public func {name}(options: CallOptions = .init()) async throws(Failure)",
            f"    -> BidirectionalStream<{request}, {response}>",
            "{",
            f"    try await channel.bidirectional({target}, options: options)",
            "}",
        ]
    if method.server_streaming:
        return [
            f"public func {name}(_ request: {request}, options: CallOptions = .init()) async throws(Failure)",
            f"    -> ServerStream<{response}>",
            "{",
            f"    try await channel.serverStream({target}, request, options: options)",
            "}",
        ]
    idempotent = str(method.idempotent).lower()
    return [
        f"public func {name}(_ request: {request}, options: CallOptions = .init()) async throws(Failure)",
        f"    -> {response}",
        "{",
        f"    try await channel.unary({target}, request, idempotent: {idempotent}, options: options)",
        "}",
    ]

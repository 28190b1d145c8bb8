"""The table of services in docs/protocol.md: every method by its service and least role, streams in bold."""

BEGIN = "<!-- Services: made by tools/generate from the services in proto/. -->\n"
END = "<!-- End of the services. -->\n"


def with_table(schema, page):
    """The page with the table of all services between the two marks."""
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page[:start] + "\n" + _table(schema) + "\n" + page[end:]


def _table(schema):
    rows = ["| service | methods | role |", "|---|---|---|"]
    # Postern's own services come first, then those of gRPC.
    services = [service for file in schema.files for service in file.services]
    for service in sorted(services, key=lambda service: not service.full_name.startswith("postern.")):
        by_role = {}
        for method in service.methods:
            is_stream = method.client_streaming or method.server_streaming
            by_role.setdefault(_role(method), []).append(f"**{method.name}**" if is_stream else method.name)
        rows += [f"| `{service.full_name}` | {', '.join(names)} | {role} |" for role, names in by_role.items()]
    return "\n".join(rows) + "\n"


def _role(method):
    """The role as pages write it: tenant-admin; none where no credential is needed.

    >>> from types import SimpleNamespace
    >>> [_role(SimpleNamespace(rule=[("role", role)])) for role in (".tenantAdmin", ".unspecified", ".any")]
    ['tenant-admin', 'none', 'any']
    """
    role = dict(method.rule)["role"].strip(".`")
    return {"unspecified": "none", "tenantAdmin": "tenant-admin", "projectAdmin": "project-admin"}.get(role, role)

import Base

/// Flags of every command that mean nothing to the command they stand beside. They are mistakes on the command line:
/// whoever writes `-t acme apikey list` expects the keys of acme, and would get the keys of all tenants.
///
/// | flag | refused |
/// |---|---|
/// | `--tenant` | by a command that is not about one tenant, and beside words that name another tenant or many |
/// | `--output`, `--fields` | by a command that prints no records; `--fields` also beside `-q` |
/// | `--confirm` | by a command that asks for no name |
/// | `--context` | by the commands that manage contexts |
///
/// A tenant of the environment or of a context is never refused: such a tenant is there for all commands. Neither are
/// the other flags. They say how to reach the server and how much to tell, and a script may give them to each command.
extension Command {
    func checkUse(of arguments: Arguments) throws(CommandError) {
        try checkTenant(in: arguments)
        try checkPrinting(in: arguments)
        guard asksForName || arguments.value("confirm") == nil else {
            throw .usage("postern \(name) asks for no name, and takes no --confirm")
        }
        guard path[0] != "context" || arguments.value("context") == nil else {
            throw .usage("postern \(name) uses no context, and takes no --context", hint: usage)
        }
    }

    // The tenant

    private func checkTenant(in arguments: Arguments) throws(CommandError) {
        // An empty tenant names none.
        guard let tenant = arguments.value("tenant"), !tenant.isEmpty else { return }
        if let operand = tenantOperand.flatMap({ arguments.operand($0) }) {
            guard operand == tenant else {
                throw .usage(
                    "--tenant \(tenant) is another one than \(TenantCommands.title(Text(operand)))",
                    hint: "leave one of them out")
            }
            return
        }
        guard isAboutTenant else {
            let scope =
                flags.contains { $0.name == "scope-tenant" } ? "--scope-tenant ID says which tenant it is for" : nil
            throw .usage("postern \(name) is not about one tenant, and takes no --tenant", hint: scope)
        }
        if let flag = Self.flagsOfManyTenants.first(where: { arguments.isSet($0) || arguments.value($0) != nil }) {
            throw .usage("--\(flag) means many tenants, and --tenant one", hint: "leave one of them out")
        }
    }

    private static let flagsOfManyTenants = ["where", "all-tenants", "any-tenant"]

    private var isAboutTenant: Bool {
        takesTenant
            ?? methods.contains { name in (try? ProtocolSchema.shared.method(name))?.namesTenant ?? false }
    }

    // The output

    private func checkPrinting(in arguments: Arguments) throws(CommandError) {
        let (format, fields) = (arguments.value("output")?.lowercased(), arguments.value("fields"))
        let isOfIDs = format == Output.Format.name.rawValue || arguments.isSet("quiet")
        switch prints {
        case .records:
            guard fields == nil || !isOfIDs else {
                throw .usage("only ids are printed with -q and -o name, and no --fields", hint: "leave one of them out")
            }
        case .noRecords:
            guard fields == nil else { throw .usage("postern \(name) prints no records, and takes no --fields") }
            guard let format, ["wide", "csv", "name"].contains(format) else { return }
            let form = flags.contains { $0.name == "format" } ? "--format says the form of the file" : nil
            throw .usage("postern \(name) prints no records, and takes no -o \(format)", hint: form)
        case .text:
            guard fields == nil, format == nil else {
                throw .usage("postern \(name) prints text, and takes no -o and no --fields")
            }
        }
    }
}

extension ProtocolSchema.Method {
    /// Whether the request says which tenant it is for.
    var namesTenant: Bool {
        ProtocolSchema.shared.messages[request]?.fields.contains { $0.name == "tenant_id" } ?? false
    }
}

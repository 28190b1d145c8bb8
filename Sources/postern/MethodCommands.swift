import Base

/// How a method is reached from the command line besides `postern rpc call`.
extension ProtocolSchema.Method {
    /// The commands that are there for the method, in the order of the command tree.
    var commands: [Command] {
        let prefix = "postern.v1."
        let name = fullName.hasPrefix(prefix) ? String(fullName.dropFirst(prefix.count)) : fullName
        return CommandTree.commands.filter { $0.methods.contains(name) }
    }

    /// Why the method has no command; nil if it has one.
    var reasonForNoCommand: String? {
        // The file of the health service is as gRPC has it, without our options.
        if fullName == "grpc.health.v1.Health/Watch" { return "for balancers, which wait for changes" }
        return stubOnly.isEmpty ? nil : stubOnly.string
    }
}

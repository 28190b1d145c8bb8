import Base

extension Command {
    /// The target of the command with these arguments.
    func target(_ arguments: Arguments) -> ChangeTarget {
        if !methods.isEmpty, methods.allSatisfy({ $0.hasPrefix("Project/") }) { return .project }
        if let filter = TenantFilterFlag.title(arguments) { return .named(filter) }
        guard let tenantOperand else { return .usualTenant }
        if let id = arguments.operand(tenantOperand) { return .named(ChangeTarget.title(Text(id))) }
        return path.last == "create" ? .named("a new tenant") : .usualTenant
    }
}

/// The program: a command's name and its flags.
enum Program {
    static func run(_ words: some Sequence<String>) throws {
        var words = Array(words)[...]
        let asksForHelp = words.contains("--help") || ["help", "-h"].contains(words.first)
        guard !asksForHelp, let command = words.popFirst() else {
            return try TextFile.printOut(Help.text)
        }
        var arguments = try Arguments(words, takingOperands: ["compare", "report", "replay"].contains(command))
        switch command {
        case "run": try RunCommand(&arguments).run()
        case "seed": try SeedCommand(&arguments).run()
        case "replay": try ReplayCommand(&arguments).run()
        case "saturate": try SaturateCommand(&arguments).run()
        case "cost": try CostCommand(&arguments).run()
        case "compare": try CompareCommand(&arguments).run()
        case "report": try ReportCommand(&arguments).run()
        case "revocation": try RevocationCommand(&arguments).run()
        case "providers": try ProvidersCommand(&arguments).run()
        case "users": try UsersCommand(&arguments).run()
        case "tenants": try TenantsCommand(&arguments).run()
        case "start": try StartCommand(&arguments).run()
        case "hostile": try HostileCommand(&arguments).run()
        case "conns": try ConnsCommand(&arguments).run()
        case "allocations": try AllocationsCommand(&arguments).run()
        default: throw UsageError("\(command): no such command; see postern-bench --help")
        }
    }
}

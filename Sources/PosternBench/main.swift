import Base
import Glibc

func runCommand() throws {
    var words = CommandLine.arguments.dropFirst()
    guard let command = words.popFirst(), !["help", "--help", "-h"].contains(command), !words.contains("--help") else {
        return try TextFile.printOut(Help.text)
    }
    var arguments = try Arguments(words, takingOperands: ["compare", "report"].contains(command))
    switch command {
    case "run": try RunCommand(&arguments).run()
    case "seed": try SeedCommand(&arguments).run()
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
    case "idle": try IdleCommand(&arguments).run()
    case "allocations": try AllocationsCommand(&arguments).run()
    default: throw UsageError("\(command): no such command; see postern-bench --help")
    }
}

do {
    try runCommand()
} catch let error as UsageError {
    TextFile.printError("postern-bench: \(error)\n")
    exit(1)
} catch let error as BenchError {
    TextFile.printError("postern-bench: \(error)\n")
    exit(error.kind.rawValue)
} catch {
    TextFile.printError("postern-bench: \(error)\n")
    exit(BenchError.Kind.failed.rawValue)
}

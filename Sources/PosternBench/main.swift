import Base
import Glibc

StandardDescriptors.fillGaps()
do {
    try Program.run(CommandLine.arguments.dropFirst())
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

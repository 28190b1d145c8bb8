import Base
import Glibc

// The program: reads the command line, makes the server, runs it until a signal, stops it in good order.

let version = "0.1.0"

func fail(_ message: String, status: Int32 = 1) -> Never {
    let line = [UInt8]("posternd: \(message)\n".utf8.prefix(4_000))
    // A pipe that nobody reads must not block the process: a writable pipe takes 4,096 bytes at once (pipe(7)).
    var output = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    if poll(&output, 1, 1_000) > 0 { _ = write(STDERR_FILENO, line, line.count) }
    exit(status)
}

/// The environment as a dictionary. The last of duplicates wins; in getenv(3) of most systems, it is the first.
func processEnvironment() -> [String: String] {
    var variables: [String: String] = [:]
    var entry = environ
    while let pointer = entry.pointee {
        let text = String(cString: pointer)
        if let equals = text.firstIndex(of: "=") {
            variables[String(text[..<equals])] = String(text[text.index(after: equals)...])
        }
        entry += 1
    }
    return variables
}

func perform(_ invocation: Invocation, _ log: Log) throws {
    try DataDirectory(invocation.configuration).admit(invocation.action)
    switch invocation.action {
    case .help: print(Invocation.helpText)
    case .version: print("posternd \(version)")
    case .printConfiguration:
        // The addresses that a start would refuse.
        _ = try Addresses(invocation.configuration)
        print(invocation.configuration.resolved(log: log).printed)
    case .recoverAdmin: try Maintenance.recoverAdmin(invocation.configuration)
    case .acceptRollback: try Maintenance.acceptRollback(invocation.configuration)
    case .verifyStore: try Maintenance.verifyStore(invocation.configuration)
    case .checkBackup(let path): try Restore.check(invocation.configuration, path, isBeforeRestore: false)
    case .checkRestore(let path): try Restore.check(invocation.configuration, path, isBeforeRestore: true)
    case .restoreBackup(let path): try Restore.run(invocation.configuration, path)
    case .beginCluster: try ClusterMember(invocation.configuration).begin()
    case .leaveCluster: try ClusterMember(invocation.configuration).leave()
    case .rejoinCluster: try ClusterJoining(invocation.configuration).rejoin()
    case .serve: try Daemon.serve(invocation.configuration)
    }
}

StandardDescriptors.fillGaps()
do {
    // Almost everything that posternd does needs the master key in memory.
    HiddenMemory.begin()
    let invocation = try Invocation(
        arguments: Array(CommandLine.arguments.dropFirst()), environment: processEnvironment())
    // The server has a log of its own, with the configured level.
    let log = Log(level: .warning)
    defer { log.close() }
    invocation.warn(log)
    // Damage ends with its own status, whatever has read the store: a supervisor starts no damaged store again.
    try DataDirectory(invocation.configuration).explaining { try perform(invocation, log) }
} catch let error as StoreRefusal {
    fail("\(error)", status: StoreRefusal.exitStatus)
} catch {
    fail("\(error)")
}

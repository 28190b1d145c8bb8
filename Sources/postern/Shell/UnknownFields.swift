import Synchronization

/// Keeps the first name in --fields that a record does not have.
///
/// The name is known to be wrong once there is a record: the command was carried out, so this is no error of usage,
/// after which nothing was sent.
final class UnknownFields: Sendable {
    private let found = Mutex<CommandError?>(nil)

    var problem: CommandError? { found.withLock { $0 } }

    func note(_ path: String, known: [String]) {
        found.withLock { problem in
            if problem != nil { return }
            problem = CommandError("there is no field \(path)", hint: Output.hint(path, known: known))
        }
    }
}

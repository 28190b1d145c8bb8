import Base
import Messages

/// The message of an update, and the fields that were set in it.
struct MaskedFields<Target: Message & Updatable>: Sendable {
    var message = Target()
    private(set) var paths: [Target.Path] = []

    var mask: ProtobufFieldMask { ProtobufFieldMask(paths: paths.map(\.name)) }

    /// Nil leaves the field alone.
    mutating func set<Value>(_ path: Target.Path, _ field: WritableKeyPath<Target, Value>, _ value: Value?) {
        guard let value else { return }
        message[keyPath: field] = value
        paths.append(path)
    }

    /// Does the same for a field that is a message. An empty message removes the present one.
    mutating func setMessage<Value: Message>(
        _ path: Target.Path, _ field: WritableKeyPath<Target, Value?>, _ value: Value?
    ) {
        guard let value else { return }
        message[keyPath: field] = value == Value() ? nil : value
        paths.append(path)
    }
}

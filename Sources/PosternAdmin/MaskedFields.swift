import Base
import Messages

/// The message of an update, and the names of the fields that were set in it.
struct MaskedFields<Target: Message>: Sendable {
    var message = Target()
    private(set) var paths: [Text] = []

    var mask: ProtobufFieldMask { ProtobufFieldMask(paths: paths) }

    /// Nil leaves the field alone.
    mutating func set<Value>(_ path: Text, _ field: WritableKeyPath<Target, Value>, _ value: Value?) {
        guard let value else { return }
        message[keyPath: field] = value
        paths.append(path)
    }

    /// The same for a field that is a message; an empty one removes what is there.
    mutating func setMessage<Value: Message>(
        _ path: Text, _ field: WritableKeyPath<Target, Value?>, _ value: Value?
    ) {
        guard let value else { return }
        message[keyPath: field] = value == Value() ? nil : value
        paths.append(path)
    }
}

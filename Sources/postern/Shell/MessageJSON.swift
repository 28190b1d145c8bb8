import Base
import JSON
import Messages

/// A message as it is printed. Generated for every message that an answer can hold.
protocol MessageJSON {
    /// The fields by their names in the proto. A record that prints something else defines its own `json`.
    var fieldsJSON: JSONValue { get }
}

extension MessageJSON {
    var json: JSONValue { fieldsJSON }
}

/// The JSON of field values for which JSON has no form.
extension JSONValue {
    /// JSON has no infinities.
    static func number(_ value: Double) -> JSONValue { value.isFinite ? .double(value) : .null }

    static func hexadecimal(_ bytes: [UInt8]) -> JSONValue { .string(Hex.encode(bytes)) }

    /// A JSON document that a message carries as bytes; null when it is empty.
    static func parsed(_ bytes: [UInt8]) -> JSONValue {
        bytes.isEmpty ? .null : (try? JSONValue(parsing: bytes)) ?? .hexadecimal(bytes)
    }

    static func parsed(_ secret: Secret) -> JSONValue { secret.withBytes { .parsed([UInt8]($0)) } }

    /// A secret that the server made for the caller, and returns only this once.
    static func handedOut(_ secret: Secret) -> JSONValue {
        .string(Text(unchecked: secret.withBytes { [UInt8]($0) }))
    }
}

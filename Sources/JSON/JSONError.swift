/// The reason why some bytes are not the expected JSON. Holds no part of the input, because that may be a secret.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Reason: Sendable, Equatable {
        case malformed
        case incomplete
        case trailingBytes
        case notUTF8
        case containsNUL
        case duplicateMember
        case numberOutOfRange
        case tooDeep
    }

    public var reason: Reason
    /// Counted from 1.
    public var line: Int
    /// Counted from 0, in the parser's bytes: an aid for the reader.
    public var column: Int

    public var description: String { "JSON: \(message) at line \(line), column \(column)" }

    private var message: String {
        switch reason {
        case .malformed: "not well formed"
        case .incomplete: "ends too early"
        case .trailingBytes: "something follows the value"
        case .notUTF8: "not UTF-8"
        case .containsNUL: "a string contains NUL"
        case .duplicateMember: "a member's name occurs twice"
        case .numberOutOfRange: "a number does not fit"
        case .tooDeep: "nested too deep"
        }
    }
}

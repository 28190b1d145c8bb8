public import Base

/// One JSON value (RFC 8259), parsed or about to be written.
///
/// Strings are `Text`: two values are equal if their bytes are equal, never by Unicode's canonical equivalence. Members
/// keep their order. A number without fraction and exponent is an `integer`, any other number a `double`.
public enum JSONValue: Sendable, Equatable {
    case null
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    case string(Text)
    case array([JSONValue])
    case object([Member])

    /// One `"name": value` of an object.
    public struct Member: Sendable, Equatable {
        public var name: Text
        public var value: JSONValue

        public init(_ name: Text, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }
}

extension JSONValue {
    public var isNull: Bool { self == .null }

    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

    /// Nil for a `double` too, even a whole one.
    public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

    /// Any number.
    public var double: Double? {
        switch self {
        case .double(let value): value
        case .integer(let value): Double(value)
        default: nil
        }
    }

    /// The bytes of a string: for comparing, storing and keys.
    public var text: Text? { if case .string(let value) = self { value } else { nil } }

    /// A string for people, and for switching over known ASCII words.
    public var string: String? { text?.string }

    public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

    public var object: [Member]? { if case .object(let value) = self { value } else { nil } }

    /// The member of that name; nil if there is none or this is no object. Linear, because objects here are small.
    public subscript(name: Text) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// As the subscript, for hot paths: a name from the source is not turned into a `Text`, which would allocate.
    public func member(_ name: StaticString) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        let name = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        // Through a span: iterating would retain every member on the way.
        let borrowed = members.span
        for index in borrowed.indices {
            let isNamed = borrowed[index].name.bytes.withUnsafeBytes { $0.hasSameBytes(as: name) }
            if isNamed { return borrowed[index].value }
        }
        return nil
    }

    /// Compact JSON in UTF-8.
    public func serialized() -> [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }

    /// For people: two spaces per level, a line per member, no line feed at the end.
    public func prettyPrinted() -> [UInt8] {
        var writer = JSONWriter(isPretty: true)
        writer.value(self)
        return writer.bytes
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: StaticString) { self = .string(Text(stringLiteral: value)) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (Text, JSONValue)...) {
        self = .object(elements.map { Member($0, $1) })
    }
}

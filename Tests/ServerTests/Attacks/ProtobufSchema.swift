import Base
import Messages

/// What the server publishes about its own protocol, as data: which methods there are and which fields their requests
/// have. A test that walks it meets every field, also those that are added later.
struct ProtobufSchema {
    /// google.protobuf.FieldDescriptorProto: the parts that are needed to make a value.
    struct Field: Sendable {
        enum Kind: Sendable, Equatable {
            case integer(bits: Int, isSigned: Bool, isZigzag: Bool)
            case fixed(bits: Int)
            case bool, text, bytes, enumeration
            case message(String)
        }

        let name: String
        let number: Int
        let kind: Kind
        let isRepeated: Bool
        /// Fields of a message with the same index exclude each other.
        let oneof: Int?
    }

    struct Method: Sendable {
        let service: String
        let name: String
        let input: String
        let isClientStreaming: Bool
        let isServerStreaming: Bool

        var fullName: String { "\(service)/\(name)" }
    }

    private(set) var messages: [String: [Field]] = [:]
    private(set) var methods: [Method] = []

    init() throws {
        for file in PublishedFile.all {
            try file.descriptor.withUnsafeBytes { file in
                let package = Self.text(file, 2)
                for message in Self.contents(file, 4) { try add(message, scope: package) }
                for service in Self.contents(file, 6) {
                    let name = "\(package).\(Self.text(service, 1))"
                    for method in Self.contents(service, 2) {
                        methods.append(
                            Method(
                                service: name, name: Self.text(method, 1),
                                input: String(Self.text(method, 2).dropFirst()),
                                isClientStreaming: Self.number(method, 5) == 1,
                                isServerStreaming: Self.number(method, 6) == 1))
                    }
                }
            }
        }
    }

    /// The path to every field that a message of this type can hold, also to the fields of nested messages.
    func paths(of message: String) -> [[Field]] {
        (messages[message] ?? []).flatMap { field -> [[Field]] in
            guard case .message(let type) = field.kind else { return [[field]] }
            return [[field]] + paths(of: type).map { [field] + $0 }
        }
    }

    private mutating func add(_ message: UnsafeRawBufferPointer, scope: String) throws {
        let name = "\(scope).\(Self.text(message, 1))"
        messages[name] = Self.contents(message, 2).map(Self.field)
        for nested in Self.contents(message, 3) { try add(nested, scope: name) }
    }

    // Field numbers are those of google/protobuf/descriptor.proto.
    private static func field(_ descriptor: UnsafeRawBufferPointer) -> Field {
        let kind: Field.Kind =
            switch number(descriptor, 5) {
            case 3: .integer(bits: 64, isSigned: true, isZigzag: false)
            case 4: .integer(bits: 64, isSigned: false, isZigzag: false)
            case 5: .integer(bits: 32, isSigned: true, isZigzag: false)
            case 13: .integer(bits: 32, isSigned: false, isZigzag: false)
            case 17: .integer(bits: 32, isSigned: true, isZigzag: true)
            case 18: .integer(bits: 64, isSigned: true, isZigzag: true)
            case 1, 6, 16: .fixed(bits: 64)
            case 2, 7, 15: .fixed(bits: 32)
            case 8: .bool
            case 9: .text
            case 12: .bytes
            case 14: .enumeration
            default: .message(String(text(descriptor, 6).dropFirst()))
            }
        return Field(
            name: text(descriptor, 1), number: Int(number(descriptor, 3) ?? 0), kind: kind,
            isRepeated: number(descriptor, 4) == 3, oneof: number(descriptor, 9).map { Int($0) })
    }

    private static func contents(_ message: UnsafeRawBufferPointer, _ number: Int) -> [UnsafeRawBufferPointer] {
        var found: [UnsafeRawBufferPointer] = []
        var reader = FieldReader(message)
        while let field = try? reader.next() {
            if field.number == number, case .bytes(let content) = field.value { found.append(content) }
        }
        return found
    }

    private static func text(_ message: UnsafeRawBufferPointer, _ number: Int) -> String {
        contents(message, number).first.map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    private static func number(_ message: UnsafeRawBufferPointer, _ number: Int) -> UInt64? {
        var reader = FieldReader(message)
        while let field = try? reader.next() {
            if field.number == number, case .varint(let value) = field.value { return value }
        }
        return nil
    }
}

/// A value on the wire, right or wrong.
indirect enum WireValue: Sendable {
    case varint(UInt64)
    case fixed(UInt64, bits: Int)
    case bytes([UInt8])
    case message(WireTree)
}

struct WireField: Sendable {
    let number: Int
    let value: WireValue
}

/// A message as its fields on the wire.
struct WireTree: Sendable {
    var fields: [WireField] = []

    /// Puts `values` at `path`, in place of the present value and of the other fields of the same oneof.
    mutating func set(
        _ path: ArraySlice<ProtobufSchema.Field>, _ values: [WireValue], siblings: (ProtobufSchema.Field) -> [Int],
        rest: (ProtobufSchema.Field) -> WireTree
    ) {
        guard let field = path.first else { return }
        let excluded = siblings(field)
        fields.removeAll { $0.number != field.number && excluded.contains($0.number) }
        let present = fields.firstIndex { $0.number == field.number }
        if path.count == 1 {
            fields.removeAll { $0.number == field.number }
            fields += values.map { WireField(number: field.number, value: $0) }
            return
        }
        var inner = rest(field)
        if let present, case .message(let tree) = fields[present].value { inner = tree }
        fields.removeAll { $0.number == field.number }
        inner.set(path.dropFirst(), values, siblings: siblings, rest: rest)
        fields.append(WireField(number: field.number, value: .message(inner)))
    }

    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        for field in fields {
            let number = field.number
            switch field.value {
            case .varint(let value):
                Self.append(varint: UInt64(number) << 3, to: &bytes)
                Self.append(varint: value, to: &bytes)
            case .fixed(let value, let bits):
                Self.append(varint: UInt64(number) << 3 | (bits == 64 ? 1 : 5), to: &bytes)
                withUnsafeBytes(of: value.littleEndian) { bytes += $0.prefix(bits / 8) }
            case .bytes(let content):
                Self.append(varint: UInt64(number) << 3 | 2, to: &bytes)
                Self.append(varint: UInt64(content.count), to: &bytes)
                bytes += content
            case .message(let tree):
                let content = tree.encoded
                Self.append(varint: UInt64(number) << 3 | 2, to: &bytes)
                Self.append(varint: UInt64(content.count), to: &bytes)
                bytes += content
            }
        }
        return bytes
    }

    private static func append(varint value: UInt64, to bytes: inout [UInt8]) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

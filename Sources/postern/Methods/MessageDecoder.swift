import Base
import JSON
import Messages

/// Converts a message's bytes to JSON, in the forms that `MessageEncoder` reads.
///
/// Every field is there, in the order of the proto, as in the JSON of other commands. A oneof has only the member that
/// is set, and an absent message is null. Fields that a newer server adds are left out.
struct MessageDecoder {
    /// The greatest depth of the protocol's messages, so that no answer exhausts the stack.
    private static let depthMax = 16

    let schema: ProtocolSchema

    func decode(_ bytes: [UInt8], as type: Text, depth: Int = 0) throws(CommandError) -> JSONValue {
        guard let message = schema.messages[type], depth < Self.depthMax else {
            throw CommandError("the answer holds a \(type) that this program cannot read")
        }
        var values: [Int: [JSONValue]] = [:]
        for (number, value) in try Self.fields(of: bytes) {
            guard let field = message.fields.first(where: { $0.number == number }) else { continue }
            values[number, default: []] += try read(value, field, depth: depth)
        }
        var members: [JSONValue.Member] = []
        for field in message.fields {
            let found = values[field.number] ?? []
            if field.isRepeated {
                members.append(.init(field.name, .array(found)))
            } else if let last = found.last {
                members.append(.init(field.name, last))
            } else if field.oneofIndex == nil {
                members.append(.init(field.name, absent(field)))
            }
        }
        return .object(members)
    }

    /// A copy of the value to which the reader points.
    private enum Value {
        case number(UInt64)
        case bytes([UInt8])
    }

    private static func fields(of bytes: [UInt8]) throws(CommandError) -> [(Int, Value)] {
        let found: [(Int, Value)]? = bytes.withUnsafeBytes { raw in
            var fields: [(Int, Value)] = []
            var reader = FieldReader(raw)
            do throws(DecodeError) {
                while let field = try reader.next() {
                    switch field.value {
                    case .varint(let value), .fixed64(let value): fields.append((field.number, .number(value)))
                    case .fixed32(let value): fields.append((field.number, .number(UInt64(value))))
                    case .bytes(let content): fields.append((field.number, .bytes([UInt8](content))))
                    }
                }
                return fields
            } catch {
                return nil
            }
        }
        guard let found else { throw CommandError("the server's answer cannot be read") }
        return found
    }

    private func read(
        _ value: Value, _ field: ProtocolSchema.Field, depth: Int
    ) throws(CommandError) -> [JSONValue] {
        switch (value, field.kind) {
        case (.bytes(let bytes), .message(let type)): return [try decode(bytes, as: type, depth: depth + 1)]
        case (.bytes(let bytes), .string): return [.string(Text(validating: bytes) ?? .empty)]
        case (.bytes(let bytes), .bytes):
            return [field.name.string.hasSuffix("_json") ? .parsed(bytes) : .hexadecimal(bytes)]
        case (.number(let bits), _): return [number(bits, field.kind)]
        case (.bytes(let bytes), let kind): return try Self.packed(bytes, kind).map { number($0, kind) }
        }
    }

    /// The numbers of a packed list.
    private static func packed(_ bytes: [UInt8], _ kind: ProtocolSchema.Kind) throws(CommandError) -> [UInt64] {
        let width: Int? =
            switch kind {
            case .double, .fixed64: 8
            case .float, .fixed32: 4
            default: nil
            }
        guard let width else { return try varints(bytes) }
        return stride(from: 0, to: bytes.count - bytes.count % width, by: width).map { start in
            bytes[start..<start + width].reversed().bigEndianNumber
        }
    }

    private static func varints(_ bytes: [UInt8]) throws(CommandError) -> [UInt64] {
        var (numbers, value, shift): ([UInt64], UInt64, UInt64) = ([], 0, 0)
        for byte in bytes {
            guard shift < 64 else { throw CommandError("the server's answer cannot be read") }
            value |= UInt64(byte & 0x7F) << shift
            shift += 7
            if byte & 0x80 == 0 {
                numbers.append(value)
                (value, shift) = (0, 0)
            }
        }
        return numbers
    }

    private func number(_ bits: UInt64, _ kind: ProtocolSchema.Kind) -> JSONValue {
        let signed = Int64(bitPattern: bits)
        switch kind {
        case .bool: return .bool(bits != 0)
        case .double: return .number(Double(bitPattern: bits))
        case .float: return .number(Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))))
        case .zigzag: return .integer(Int64(bitPattern: bits >> 1) ^ -(signed & 1))
        case .fixed32(isSigned: true): return .integer(Int64(Int32(truncatingIfNeeded: bits)))
        case .enumeration(let type):
            let name = schema.enums[type]?.values.first { $0.number == signed }?.name
            return name.map { .string($0) } ?? .integer(signed)
        // A value above our JSON integers is shown as the largest one.
        case .integer(isSigned: false), .fixed64(isSigned: false), .fixed32: return .integer(Int64(clamping: bits))
        default: return .integer(signed)
        }
    }

    private func absent(_ field: ProtocolSchema.Field) -> JSONValue {
        switch field.kind {
        case .message: .null
        case .string: .string(.empty)
        case .bytes: field.name.string.hasSuffix("_json") ? .null : .string(.empty)
        default: number(0, field.kind)
        }
    }
}

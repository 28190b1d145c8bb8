import Base
import JSON
import Messages

/// Converts JSON with the proto's field names to a message's bytes.
///
/// Reads the forms that `postern -o json` prints: integers as numbers, enums by their names, bytes as hexadecimal
/// digits, and bytes called ..._json as the JSON in them. A field that the message does not have is refused, because a
/// misspelt field would be left out silently.
struct MessageEncoder {
    let schema: ProtocolSchema

    /// `path`: the place of this value in the request, for error messages.
    func encode(_ json: JSONValue, as type: Text, path: String = "") throws(CommandError) -> [UInt8] {
        guard let members = json.object else { throw wrong(path, "an object") }
        guard let message = schema.messages[type] else { throw CommandError("there is no message \(type)") }
        var buffer = ByteBuffer()
        var setOneofs: [Int: Text] = [:]
        for member in members {
            let name = path.isEmpty ? member.name.string : "\(path).\(member.name)"
            guard let field = message.fields.first(where: { $0.name == member.name }) else {
                let names = message.fields.map(\.name.string)
                throw .usage(
                    "\(type) has no field \(member.name)",
                    hint: nearest(to: member.name.string, in: names).map { "did you mean \($0)?" }
                        ?? "its fields: \(names.joined(separator: ", "))")
            }
            if member.value.isNull { continue }
            if let index = field.oneofIndex, let other = setOneofs.updateValue(field.name, forKey: index) {
                throw .usage("\(name) and \(other) exclude each other")
            }
            if field.isRepeated {
                guard let elements = member.value.array else { throw wrong(name, "an array") }
                for element in elements { try append(element, of: field, path: name, to: &buffer) }
            } else {
                try append(member.value, of: field, path: name, to: &buffer)
            }
        }
        return buffer.copyBytes()
    }

    private func append(
        _ value: JSONValue, of field: ProtocolSchema.Field, path: String, to buffer: inout ByteBuffer
    ) throws(CommandError) {
        let number = field.number
        switch field.kind {
        case .integer(let isSigned):
            buffer.appendTag(number, .varint)
            buffer.appendVarint(UInt64(bitPattern: try integer(value, path, isSigned: isSigned)))
        case .zigzag:
            let integer = try integer(value, path, isSigned: true)
            buffer.appendTag(number, .varint)
            buffer.appendVarint(UInt64(bitPattern: (integer << 1) ^ (integer >> 63)))
        case .fixed64(let isSigned):
            buffer.appendTag(number, .fixed64)
            appendLittleEndian(UInt64(bitPattern: try integer(value, path, isSigned: isSigned)), 8, to: &buffer)
        case .fixed32(let isSigned):
            buffer.appendTag(number, .fixed32)
            appendLittleEndian(UInt64(bitPattern: try integer(value, path, isSigned: isSigned)), 4, to: &buffer)
        case .double:
            guard let double = value.double else { throw wrong(path, "a number") }
            buffer.appendTag(number, .fixed64)
            appendLittleEndian(double.bitPattern, 8, to: &buffer)
        case .float:
            guard let double = value.double else { throw wrong(path, "a number") }
            buffer.appendTag(number, .fixed32)
            appendLittleEndian(UInt64(Float(double).bitPattern), 4, to: &buffer)
        case .bool:
            guard let bool = value.bool else { throw wrong(path, "true or false") }
            buffer.appendTag(number, .varint)
            buffer.appendVarint(bool ? 1 : 0)
        case .enumeration(let type):
            buffer.appendTag(number, .varint)
            buffer.appendVarint(UInt64(bitPattern: try enumeration(value, type, path)))
        case .string:
            guard let text = value.text else { throw wrong(path, "a string") }
            append(text.bytes, number, to: &buffer)
        case .bytes: append(try bytes(value, field.name, path), number, to: &buffer)
        case .message(let type): append(try encode(value, as: type, path: path), number, to: &buffer)
        }
    }

    /// Appends empty bytes too: an element of a list, or a member of a oneof, is present because it is named.
    private func append(_ bytes: [UInt8], _ number: Int, to buffer: inout ByteBuffer) {
        buffer.appendTag(number, .lengthDelimited)
        buffer.appendVarint(UInt64(bytes.count))
        bytes.withUnsafeBytes { buffer.append(contentsOf: $0) }
    }

    private func appendLittleEndian(_ bits: UInt64, _ byteCount: Int, to buffer: inout ByteBuffer) {
        let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: bits >> (UInt64($0) * 8)) }
        bytes.withUnsafeBytes { buffer.append(contentsOf: $0) }
    }

    private func integer(_ value: JSONValue, _ path: String, isSigned: Bool) throws(CommandError) -> Int64 {
        guard let integer = value.integer ?? value.string.flatMap({ Int64($0) }), isSigned || integer >= 0 else {
            throw wrong(path, isSigned ? "a whole number" : "a whole number from 0 on")
        }
        return integer
    }

    private func enumeration(_ value: JSONValue, _ type: Text, _ path: String) throws(CommandError) -> Int64 {
        if let number = value.integer { return number }
        let values = schema.enums[type]?.values ?? []
        guard let name = value.text, let found = values.first(where: { $0.name == name }) else {
            throw wrong(path, "one of " + values.map(\.name.string).joined(separator: ", "))
        }
        return found.number
    }

    private func bytes(_ value: JSONValue, _ name: Text, _ path: String) throws(CommandError) -> [UInt8] {
        if name.string.hasSuffix("_json"), value.object != nil || value.array != nil { return value.serialized() }
        guard let text = value.text, let bytes = Hex.decode(text.bytes) else {
            throw wrong(path, "bytes as hexadecimal digits")
        }
        return bytes
    }

    private func wrong(_ path: String, _ expected: String) -> CommandError {
        .usage("\(path.isEmpty ? "the request" : path) must be \(expected)")
    }
}

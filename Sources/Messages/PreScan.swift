import Base
import CMessages

/// A linear check of a message's bytes against its schema, before protobuf-c sees them.
///
/// protobuf-c 1.4 has no recursion limit, takes quadratic time to merge a sub-message that occurs again and again, and
/// lets the last of two equal fields win. The pre-scan refuses all three, and every second spelling of a value, so that
/// two readers of the same bytes cannot see different values. It allocates nothing unless it refuses.
struct PreScan {
    private let depthMax: Int
    private let fieldsPerMessageMax: Int
    private var fieldsLeft: Int
    private var unknownFieldsLeft: Int
    /// The C structs of the inner messages.
    private var innerByteCount = 0

    static func check(
        _ bytes: UnsafeRawBufferPointer, against schema: UnsafePointer<PosternSchema>, limits: MessageLimits
    ) throws(DecodeError) {
        var scan = PreScan(
            depthMax: limits.depthMax, fieldsPerMessageMax: limits.fieldsPerMessageMax,
            fieldsLeft: limits.fieldsMax, unknownFieldsLeft: limits.unknownFieldsMax)
        try scan.message(WireCursor(bytes), schema, depth: 1, into: nil)
    }

    /// Checks a flat message, and puts each value where protobuf-c would put it, into the C struct `target`, which is
    /// all zeroes. Texts and bytes are not copied: `target` points into `bytes`.
    static func read(
        _ bytes: UnsafeRawBufferPointer, of schema: UnsafePointer<PosternSchema>, limits: MessageLimits,
        into target: UnsafeMutableRawPointer
    ) throws(DecodeError) {
        var scan = PreScan(
            depthMax: limits.depthMax, fieldsPerMessageMax: limits.fieldsPerMessageMax,
            fieldsLeft: limits.fieldsMax, unknownFieldsLeft: limits.unknownFieldsMax)
        try scan.message(WireCursor(bytes), schema, depth: 1, into: target)
    }

    /// How many fields `MessageLimits.fieldsMax` counts in a message, which are all fields, those of inner messages
    /// included. In bytes that the pre-scan refuses, the fields up to the fault are counted.
    static func fieldCount(_ bytes: UnsafeRawBufferPointer, of schema: UnsafePointer<PosternSchema>) -> Int {
        counted(bytes, of: schema).fields
    }

    /// The same number, and the bytes of the C structs of all inner messages.
    static func counted(
        _ bytes: UnsafeRawBufferPointer, of schema: UnsafePointer<PosternSchema>
    ) -> (fields: Int, innerByteCount: Int) {
        var scan = PreScan(depthMax: .max, fieldsPerMessageMax: .max, fieldsLeft: .max, unknownFieldsLeft: .max)
        try? scan.message(WireCursor(bytes), schema, depth: 1, into: nil)
        return (.max - scan.fieldsLeft, scan.innerByteCount)
    }

    private mutating func message(
        _ body: WireCursor, _ schema: UnsafePointer<PosternSchema>, depth: Int, into target: UnsafeMutableRawPointer?
    ) throws(DecodeError) {
        guard depth <= depthMax else { throw .limit("message depth") }
        var body = body
        var seen: UInt64 = 0
        var countLeft = fieldsPerMessageMax
        while !body.isAtEnd {
            let (number, wireType) = try body.tag()
            guard number < schema.pointee.field_count, schema.pointee.fields[Int(number)].name != nil else {
                try count(&countLeft)
                try unknown(&body, wireType)
                continue
            }
            let field = schema.pointee.fields + Int(number)
            guard let kind = FieldKind(rawValue: field.pointee.kind) else {
                preconditionFailure("field kind \(field.pointee.kind) in the generated table")
            }
            if field.pointee.is_repeated == 0 {
                let bit = UInt64(1) << UInt64(field.pointee.seen_bit)
                guard seen & bit == 0 else { throw .duplicate(field: name(of: field)) }
                seen |= bit
            } else if wireType == 2, kind.isPackable {
                var run = try body.lengthDelimited()
                while !run.isAtEnd {
                    try count(&countLeft)
                    _ = try scalar(&run, field, kind)
                }
                continue
            }
            guard wireType == field.pointee.wire_type else { throw .malformed }
            try count(&countLeft)
            try value(&body, field, kind, depth, into: target.map { $0 + Int(field.pointee.offset) })
        }
    }

    @inline(__always)
    private mutating func value(
        _ body: inout WireCursor, _ field: UnsafePointer<PosternField>, _ kind: FieldKind, _ depth: Int,
        into place: UnsafeMutableRawPointer?
    ) throws(DecodeError) {
        switch kind {
        case .text:
            let content = try body.lengthDelimited()
            guard UTF8Validation.isText(content.bytes) else { throw .text(field: name(of: field)) }
            place?.storeBytes(of: ProtobufCBinaryData(borrowing: content.bytes), as: ProtobufCBinaryData.self)
        case .bytes:
            let content = try body.lengthDelimited()
            place?.storeBytes(of: ProtobufCBinaryData(borrowing: content.bytes), as: ProtobufCBinaryData.self)
        case .message:
            innerByteCount += field.pointee.message.pointee.descriptor.pointee.sizeof_message
            let content = try body.lengthDelimited()
            do throws(DecodeError) {
                try message(content, field.pointee.message, depth: depth + 1, into: nil)
            } catch {
                throw error.inside(name(of: field))
            }
        case .integer64:
            let value = try scalar(&body, field, kind)
            place?.storeBytes(of: value, as: UInt64.self)
        default:
            // In C a bool and an enum are as long as a 32-bit number.
            let value = try scalar(&body, field, kind)
            place?.storeBytes(of: UInt32(truncatingIfNeeded: value), as: UInt32.self)
        }
    }

    /// One value of a varint or fixed type; 0 for a fixed one. A varint must fit the type: 2^32 is not a second
    /// spelling of 0.
    @inline(__always)
    private func scalar(
        _ body: inout WireCursor, _ field: UnsafePointer<PosternField>, _ kind: FieldKind
    ) throws(DecodeError) -> UInt64 {
        if kind == .fixed64 || kind == .fixed32 {
            _ = try body.take(kind == .fixed64 ? 8 : 4)
            return 0
        }
        let value = try body.varint()
        switch kind {
        case .int32:
            guard Int32(exactly: Int64(bitPattern: value)) != nil else { throw .malformed }
        case .uint32:
            guard value <= UInt64(UInt32.max) else { throw .malformed }
        case .bool:
            guard value <= 1 else { throw .malformed }
        case .enumeration:
            // Proof: a byte fits any integer.
            guard value >> 6 < UInt64(field.pointee.enum_word_count),
                field.pointee.enum_values[Int(value >> 6)] >> (value & 63) & 1 == 1
            else { throw .enumValue(field: name(of: field)) }
        case .integer64, .fixed64, .fixed32, .bytes, .text, .message: break
        }
        return value
    }

    /// A newer peer may send fields this version does not know; they are skipped and never stored.
    private mutating func unknown(_ body: inout WireCursor, _ wireType: UInt8) throws(DecodeError) {
        unknownFieldsLeft -= 1
        guard unknownFieldsLeft >= 0 else { throw .limit("unknown fields") }
        switch wireType {
        case 0: _ = try body.varint()
        case 1: _ = try body.take(8)
        case 2: _ = try body.lengthDelimited()
        case 5: _ = try body.take(4)
        default: throw .malformed
        }
    }

    @inline(__always)
    private mutating func count(_ left: inout Int) throws(DecodeError) {
        left -= 1
        fieldsLeft -= 1
        guard left >= 0 else { throw .limit("fields per message") }
        guard fieldsLeft >= 0 else { throw .limit("fields") }
    }

    private func name(of field: UnsafePointer<PosternField>) -> String { String(cString: field.pointee.name) }
}

extension ProtobufCBinaryData {
    /// Nobody writes through the pointer.
    fileprivate init(borrowing bytes: UnsafeRawBufferPointer) {
        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        self.init(len: bytes.count, data: UnsafeMutablePointer(mutating: start))
    }
}

extension DecodeError {
    /// The same error as the outer message reports it: the outer field's name goes in front of the path.
    fileprivate func inside(_ outer: String) -> DecodeError {
        switch self {
        case .duplicate(let field): .duplicate(field: "\(outer).\(field)")
        case .text(let field): .text(field: "\(outer).\(field)")
        case .enumValue(let field): .enumValue(field: "\(outer).\(field)")
        case .malformed, .limit, .budget: self
        }
    }
}

// The metadata of an envelope as a view of its bytes: checked once while the envelope is scanned, read again on demand.

import Base
import Messages

/// One entry of a `Metadata`; the slices live as long as the envelope's bytes.
public struct MetadataEntry {
    public let key: UnsafeRawBufferPointer
    public let value: UnsafeRawBufferPointer
}

/// Metadata entries in the order in which they were sent. Keys are [0-9a-z_.-]+, values UTF-8 without NUL.
///
/// A view: nothing is copied or allocated, and every slice is valid only as long as the bytes of the frame. The six
/// keys that Postern itself reads are found already, and occur at most once. Of other keys the first entry counts.
public struct Metadata {
    public private(set) var authorization: UnsafeRawBufferPointer?
    public private(set) var traceparent: UnsafeRawBufferPointer?
    public private(set) var requestID: UnsafeRawBufferPointer?
    public private(set) var idempotencyKey: UnsafeRawBufferPointer?
    /// `x-postern-position` and `x-postern-consistency`.
    public private(set) var position: UnsafeRawBufferPointer?
    public private(set) var consistency: UnsafeRawBufferPointer?
    public private(set) var count = 0

    /// Entries are the envelope's fields with this number.
    private let envelope: UnsafeRawBufferPointer
    private let fieldNumber: Int
    /// The size of all entries, as HTTP/2 and gRPC count it: key, value, and 32 bytes of overhead per entry.
    private var byteCount = 0

    init(in envelope: UnsafeRawBufferPointer, field fieldNumber: Int) {
        self.envelope = envelope
        self.fieldNumber = fieldNumber
    }

    /// Only values of the keys that Postern itself reads, in UTF-8 without NUL.
    public init(
        authorization: UnsafeRawBufferPointer? = nil, traceparent: UnsafeRawBufferPointer? = nil,
        requestID: UnsafeRawBufferPointer? = nil, idempotencyKey: UnsafeRawBufferPointer? = nil,
        position: UnsafeRawBufferPointer? = nil, consistency: UnsafeRawBufferPointer? = nil
    ) {
        self.init(in: UnsafeRawBufferPointer(start: nil, count: 0), field: WireRequest.FieldNumber.metadata)
        self.authorization = authorization
        self.traceparent = traceparent
        self.requestID = requestID
        self.idempotencyKey = idempotencyKey
        self.position = position
        self.consistency = consistency
    }

    /// The value of the first entry with this key.
    public func first(_ key: StaticString) -> UnsafeRawBufferPointer? { first(key.bytes) }

    /// The same for a key that is known only at run time.
    public func first(_ key: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        first(where: { $0.key.hasSameBytes(as: key) })?.value
    }

    /// Checks an entry that the envelope's scan found, and keeps its value if its key is one of the six.
    mutating func note(_ bytes: UnsafeRawBufferPointer, limits: MessageLimits) throws(EnvelopeError) {
        let entry = try MetadataEntry(reading: bytes, limits: limits)
        count += 1
        byteCount += entry.key.count + entry.value.count + 32
        guard count <= limits.metadataEntriesMax, byteCount <= limits.metadataMax else { throw .metadataTooLarge }
        switch entry.key.count {
        case 11: try Self.keep(entry, as: "traceparent", in: &traceparent)
        case 12: try Self.keep(entry, as: "x-request-id", in: &requestID)
        case 13: try Self.keep(entry, as: "authorization", in: &authorization)
        case 15: try Self.keep(entry, as: "idempotency-key", in: &idempotencyKey)
        case 18: try Self.keep(entry, as: "x-postern-position", in: &position)
        case 21: try Self.keep(entry, as: "x-postern-consistency", in: &consistency)
        default: break
        }
    }

    private static func keep(
        _ entry: MetadataEntry, as key: StaticString, in slot: inout UnsafeRawBufferPointer?
    ) throws(EnvelopeError) {
        guard entry.key.hasSameBytes(as: key.bytes) else { return }
        guard slot == nil else { throw .duplicate(.metadata) }
        slot = entry.value
    }
}

extension Metadata: Sequence {
    public struct Iterator: IteratorProtocol {
        fileprivate var reader: FieldReader
        fileprivate let fieldNumber: Int

        public mutating func next() -> MetadataEntry? {
            // These bytes passed the envelope's scan: reading them again cannot fail.
            while let field = try? reader.next() {
                if field.number == fieldNumber, case .bytes(let content) = field.value {
                    return MetadataEntry(rereading: content)
                }
            }
            return nil
        }
    }

    public func makeIterator() -> Iterator { Iterator(reader: FieldReader(envelope), fieldNumber: fieldNumber) }

    public var underestimatedCount: Int { count }
}

extension MetadataEntry {
    private typealias Fields = WireKeyValue.FieldNumber

    /// Reads and checks a KeyValue message.
    fileprivate init(reading bytes: UnsafeRawBufferPointer, limits: MessageLimits) throws(EnvelopeError) {
        var reader = FieldReader(bytes)
        var key: UnsafeRawBufferPointer?
        var value: UnsafeRawBufferPointer?
        var unknownFields = 0
        while let field = try reader.nextField() {
            switch (field.number, field.value) {
            case (Fields.key, .bytes(let content)):
                guard key == nil else { throw .duplicate(.key) }
                key = content
            case (Fields.value, .bytes(let content)):
                guard value == nil else { throw .duplicate(.value) }
                value = content
            case (Fields.key, _): throw .wrongWireType(.key)
            case (Fields.value, _): throw .wrongWireType(.value)
            default:
                unknownFields += 1
                guard unknownFields <= limits.unknownFieldsMax else { throw .tooManyUnknownFields }
            }
        }
        guard let key else { throw .missing(.key) }
        guard Self.isKey(key) else { throw .text(.key) }
        self.key = key
        self.value = value ?? UnsafeRawBufferPointer(rebasing: bytes[..<0])
        guard UTF8Validation.isText(self.value) else { throw .text(.value) }
    }

    fileprivate init(rereading bytes: UnsafeRawBufferPointer) {
        let nothing = UnsafeRawBufferPointer(rebasing: bytes[..<0])
        self.key = firstField(Fields.key, in: bytes) ?? nothing
        self.value = firstField(Fields.value, in: bytes) ?? nothing
    }

    private static func isKey(_ bytes: UnsafeRawBufferPointer) -> Bool {
        for byte in bytes {
            // One bit per character of the table's half: - . 0-9 in the lower, _ a-z in the upper.
            let half: UInt64 = byte < 64 ? 0x03FF_6000_0000_0000 : 0x07FF_FFFE_8000_0000
            guard byte < 128, half >> (UInt64(byte) & 63) & 1 == 1 else { return false }
        }
        return !bytes.isEmpty
    }
}

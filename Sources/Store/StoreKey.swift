public import Base

/// The beginning of keys: a scan stays within the keys that begin with it.
public protocol KeyPrefix: Sendable {
    /// Must write the same bytes every time.
    func write(into key: inout KeyWriter)
}

/// A table's key; the store orders and compares nothing but its bytes.
///
/// Variable-length parts before another part end in a zero byte (`append(terminated:)`; no `Text` holds one), numbers
/// are big-endian, identifiers that can be long are hashed by the caller.
public protocol StoreKey: KeyPrefix {
    /// Reads what `write` wrote. Nil for bytes that no such key writes.
    init?(stored bytes: UnsafeRawBufferPointer)
}

/// A key that is written into a buffer on the caller's stack. If it is too long, the operation throws `.keySize`.
public struct KeyWriter: ~Copyable {
    /// LMDB's compiled-in maximum (`mdb_env_get_maxkeysize`).
    public static let byteCountMax = 511

    @usableFromInline let storage: UnsafeMutableRawBufferPointer
    @usableFromInline var count = 0
    @usableFromInline var isTooLong = false

    @inlinable
    init(into storage: UnsafeMutableRawBufferPointer) { self.storage = storage }

    @inlinable
    public mutating func append(_ byte: UInt8) {
        guard count < storage.count else { return isTooLong = true }
        storage[count] = byte
        count += 1
    }

    @inlinable
    public mutating func append(contentsOf bytes: UnsafeRawBufferPointer) {
        guard storage.count - count >= bytes.count else { return isTooLong = true }
        guard let source = bytes.baseAddress, let target = storage.baseAddress else { return }
        (target + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    @inlinable
    public mutating func append(contentsOf bytes: [UInt8]) {
        bytes.withUnsafeBytes { append(contentsOf: $0) }
    }

    /// The text and a zero byte, so that no other text's keys begin with the same bytes.
    @inlinable
    public mutating func append(terminated text: Text) {
        append(contentsOf: text.bytes)
        append(0)
    }

    @inlinable
    public mutating func append(bigEndian value: UInt64) {
        withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}

/// Takes a stored key apart in the order in which `KeyWriter` wrote it. Each function returns nil if too few bytes are
/// left.
public struct KeyReader {
    private var rest: Slice<UnsafeRawBufferPointer>

    public init(_ bytes: UnsafeRawBufferPointer) { rest = bytes[...] }

    /// A text up to its zero byte.
    public mutating func terminated() -> Text? {
        guard let end = rest.firstIndex(of: 0) else { return nil }
        // The record's MAC covers the key's bytes, so a `Text` wrote them.
        let text = Text(unchecked: [UInt8](rest[..<end]))
        rest = rest[(end + 1)...]
        return text
    }

    public mutating func byte() -> UInt8? { rest.popFirst() }

    public mutating func bytes(_ count: Int) -> [UInt8]? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return [UInt8](rest.prefix(count))
    }

    public mutating func bigEndian() -> UInt64? {
        guard rest.count >= 8 else { return nil }
        defer { rest = rest.dropFirst(8) }
        return rest.prefix(8).bigEndianNumber
    }

    /// All remaining bytes.
    public mutating func remainder() -> [UInt8] {
        defer { rest = rest.dropFirst(rest.count) }
        return [UInt8](rest)
    }

    /// All remaining bytes, which a `Text` wrote.
    public mutating func remainingText() -> Text { Text(unchecked: remainder()) }

    public var isAtEnd: Bool { rest.isEmpty }
}

extension KeyPrefix {
    /// The key as one array. A key that is too long is our own mistake here and traps.
    public var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: KeyWriter.byteCountMax) { buffer, count in
            var writer = KeyWriter(into: UnsafeMutableRawBufferPointer(buffer))
            write(into: &writer)
            precondition(!writer.isTooLong, "a key above \(KeyWriter.byteCountMax) bytes")
            count = writer.count
        }
    }
}

/// The bytes as they are, for ids of fixed length.
extension Array: KeyPrefix, StoreKey where Element == UInt8 {
    public init?(stored bytes: UnsafeRawBufferPointer) { self.init(bytes) }

    @inlinable
    public func write(into key: inout KeyWriter) { key.append(contentsOf: self) }
}

/// The empty prefix, for a scan over a whole table.
public struct EmptyPrefix: KeyPrefix {
    @inlinable
    public init() {}

    @inlinable
    public func write(into key: inout KeyWriter) {}
}

/// `tenant ‖ 0x00`: the beginning of all keys of one tenant.
public struct TenantPrefix: StoreKey, Hashable {
    public var tenant: Text

    @inlinable
    public init(_ tenant: Text) { self.tenant = tenant }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated(), key.isAtEnd else { return nil }
        self.tenant = tenant
    }

    @inlinable
    public func write(into key: inout KeyWriter) { key.append(terminated: tenant) }
}

/// The key's bytes on the stack for the duration of `body`: no heap on the hot path.
@inlinable
func withBytes<Key: KeyPrefix, Result>(
    of key: Key, _ body: (UnsafeRawBufferPointer) throws(StoreError) -> Result
) throws(StoreError) -> Result {
    try withUnsafeTemporaryAllocation(byteCount: KeyWriter.byteCountMax, alignment: 1) {
        buffer throws(StoreError) -> Result in
        var writer = KeyWriter(into: buffer)
        key.write(into: &writer)
        if writer.isTooLong { throw .keySize }
        return try body(UnsafeRawBufferPointer(rebasing: buffer[..<writer.count]))
    }
}

public import Base

/// Something that writes itself as the bytes of a key; the store orders and compares nothing but these bytes.
///
/// Variable-length parts before another part end in a zero byte (`append(terminated:)`; no `Text` holds one), numbers
/// are big-endian, identifiers that can be long are hashed by the caller. Must write the same bytes every time.
public protocol StoreKey {
    func write(into key: inout KeyWriter)
}

/// A key being written into a buffer on the caller's stack. Too long a key makes the operation throw `.keySize`.
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

/// The bytes as they are: resume keys, ids of fixed length.
extension Array: StoreKey where Element == UInt8 {
    @inlinable
    public func write(into key: inout KeyWriter) { key.append(contentsOf: self) }
}

/// Before every key: the prefix of a scan over a whole table.
public struct EmptyPrefix: StoreKey, Sendable {
    @inlinable
    public init() {}

    @inlinable
    public func write(into key: inout KeyWriter) {}
}

/// `tenant ‖ 0x00`: what all keys of one tenant begin with.
public struct TenantPrefix: StoreKey, Sendable, Hashable {
    public var tenant: Text

    @inlinable
    public init(_ tenant: Text) { self.tenant = tenant }

    @inlinable
    public func write(into key: inout KeyWriter) { key.append(terminated: tenant) }
}

/// The key's bytes on the stack for the duration of `body`: no heap on the hot path.
@inlinable
func withBytes<Key: StoreKey, Result>(
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

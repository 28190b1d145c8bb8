public import Base
import CSodium

/// Binds a record's value to its key and its table: 16-byte tags by SipHash-2-4-128, for every read of the store.
///
/// SipHash takes one buffer, so the tag is computed in two steps that copy nothing: the record's key is hashed under
/// the table's key, and the resulting 16 bytes are the key for the value. SipHash is a pseudo-random function, so each
/// record has a key of its own that nobody can know, and the border between key and value needs no encoding. A tag
/// protects against anybody who can change the file but does not have the master key. Any thread.
public struct MACKey: Sendable {
    public static let tagByteCount = Int(crypto_shorthash_siphashx24_BYTES)
    public static let keyByteCount = Int(crypto_shorthash_siphashx24_KEYBYTES)

    fileprivate let tableKey: Secret

    /// One key per table: `MasterKey.recordMAC(table:)`. Exactly 16 bytes.
    public init(_ key: Secret) {
        precondition(key.byteCount == Self.keyByteCount, "a key of \(key.byteCount) bytes for SipHash")
        self.tableKey = key
    }

    /// Writes the tag into `output`, which has 16 bytes and must overlap neither `value` nor `key`.
    public func writeTag(
        of value: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) {
        tableKey.withBytes { Self.writeTag(of: value, at: key, under: $0, into: output) }
    }

    static func writeTag(
        of value: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer, under tableKey: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) {
        precondition(output.count >= Self.tagByteCount, "\(output.count) bytes are no room for a tag")
        withUnsafeTemporaryAllocation(byteCount: Self.keyByteCount, alignment: 8) { recordKey in
            Self.hash(key, under: tableKey, into: recordKey)
            Self.hash(value, under: UnsafeRawBufferPointer(recordKey), into: output)
        }
    }

    public func tag(of value: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.tagByteCount) { output, initializedCount in
            writeTag(of: value, at: key, into: UnsafeMutableRawBufferPointer(output))
            initializedCount = Self.tagByteCount
        }
    }

    /// Compares in constant time; false for any other length than 16. Allocates nothing.
    public func isValid(
        tag: UnsafeRawBufferPointer, of value: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer
    ) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: Self.tagByteCount, alignment: 8) { expected in
            writeTag(of: value, at: key, into: expected)
            return constantTimeEqual(tag, UnsafeRawBufferPointer(expected))
        }
    }

    static func hash(
        _ message: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) {
        // Never fails: "always returns 0" in libsodium's siphashx24; a null message is allowed with a count of zero.
        _ = crypto_shorthash_siphashx24(output.octets!, message.octets, UInt64(message.count), key.octets!)
    }
}

/// The keys of many tables, side by side: one that is used counts no reference. Any thread.
public struct MACKeyTable: Sendable {
    private let keys: Secret

    public init(_ keys: [MACKey]) { self.keys = Secret(joining: keys.map(\.tableKey)) }

    /// See `MACKey.writeTag`; `index` is the key's place among those of `init`.
    public func writeTag(
        of value: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer, under index: Int,
        into output: UnsafeMutableRawBufferPointer
    ) {
        keys.withBytes { keys in
            let start = index * MACKey.keyByteCount
            let tableKey = UnsafeRawBufferPointer(rebasing: keys[start..<start + MACKey.keyByteCount])
            MACKey.writeTag(of: value, at: key, under: tableKey, into: output)
        }
    }
}

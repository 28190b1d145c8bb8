/// Makes the MAC that ties a value to its table and key, so that records cannot be altered or swapped in the file.
public protocol RecordAuthenticator: AnyObject, Sendable {
    /// A keyed 128-bit tag over the table, the key, the value and the border between key and value. Called on any
    /// thread; must not keep the pointers.
    func tag(table: UInt8, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> (UInt64, UInt64)
}

/// A stored value: one version byte ‖ 16-byte MAC over (table, key, payload) ‖ payload.
enum RecordSeal {
    static let version: UInt8 = 1
    static let byteCount = 17

    /// The payload inside of `stored`, or nil if the value is not what was put there under this key.
    @inline(__always)
    static func open(
        _ stored: UnsafeRawBufferPointer, table: UInt8, key: UnsafeRawBufferPointer,
        authenticator: any RecordAuthenticator
    ) -> UnsafeRawBufferPointer? {
        guard stored.count >= byteCount, stored[0] == version else { return nil }
        let payload = UnsafeRawBufferPointer(rebasing: stored[byteCount...])
        let tag = authenticator.tag(table: table, key: key, value: payload)
        let first = stored.loadUnaligned(fromByteOffset: 1, as: UInt64.self)
        let second = stored.loadUnaligned(fromByteOffset: 9, as: UInt64.self)
        guard (first ^ tag.0.littleEndian) | (second ^ tag.1.littleEndian) == 0 else { return nil }
        return payload
    }

    /// Fills `target`, which has `byteCount` bytes more than the payload.
    @inline(__always)
    static func seal(
        _ payload: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer, tag: (UInt64, UInt64)
    ) {
        target.storeBytes(of: version, as: UInt8.self)
        target.storeBytes(of: tag.0.littleEndian, toByteOffset: 1, as: UInt64.self)
        target.storeBytes(of: tag.1.littleEndian, toByteOffset: 9, as: UInt64.self)
        if let source = payload.baseAddress { (target + byteCount).copyMemory(from: source, byteCount: payload.count) }
    }
}

public import Base

/// The ids of sessions: UUIDs of version 7 (RFC 9562 §5.7), 48 bits of milliseconds and then random bits.
///
/// Sessions that begin together lie together in the store, so that a commit of many touches few pages. An id is not a
/// secret: a refresh token is authenticated (`RefreshTokenCodec`), and an ID token states the id together with the
/// time.
public enum SessionID {
    /// 16 bytes.
    public static func make(at now: Timestamp, random: RandomSource) -> [UInt8] {
        var id = random.bytes(16)
        withUnsafeBytes(of: (UInt64(clamping: now.microseconds) / 1_000).bigEndian) {
            id.replaceSubrange(..<6, with: $0[2...])
        }
        id[6] = id[6] & 0x0F | 0x70
        id[8] = id[8] & 0x3F | 0x80
        return id
    }

    /// When the session began, as its id tells; nil for an id of another form.
    public static func time(of id: [UInt8]) -> Timestamp? {
        guard id.count == 16, id[6] >> 4 == 7, id[8] >> 6 == 2 else { return nil }
        return Timestamp(microseconds: Int64(clamping: id[..<6].bigEndianNumber) * 1_000)
    }
}

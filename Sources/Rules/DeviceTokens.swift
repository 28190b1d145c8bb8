public import Base
public import Crypto
public import Messages

/// Makes and checks device tokens: `version ‖ device id ‖ issue time ‖ HMAC-SHA256`, base64url.
///
/// A sign-in returns a token, and the client sends it with the next sign-in. The token shows that the device signed in
/// to this very account before, and so gives it a bucket of its own in the password throttle; it proves no identity and
/// gives no access. Nothing is stored: the HMAC also covers the tenant and the uid, so that a token of another account
/// does not count.
///
/// A token lasts 400 days. For passwords it does not count beyond a change of the account's password, because a thief
/// who had the password could have collected thousands of tokens, each with free guesses at the next password.
///
/// The version tells whether the session that the token was issued to had shown a second factor. Only then the token
/// counts for second factors. It counts there until the account's factors are replaced.
public struct DeviceTokens: Sendable {
    public static let idByteCount = 16
    public static let lifetime = Duration.days(400)

    /// The device that a token names.
    public struct Device: Equatable, Sendable {
        /// 16 bytes, random for a device that had no token of this account.
        public let id: [UInt8]
        /// Whether the session that the token was issued to had shown a second factor.
        public let hasShownFactor: Bool

        public init(id: [UInt8], hasShownFactor: Bool) {
            self.id = id
            self.hasShownFactor = hasShownFactor
        }

        fileprivate var version: UInt8 { hasShownFactor ? DeviceTokens.factorVersion : DeviceTokens.plainVersion }
    }

    /// All tokens of servers that did not tell the two apart have this version.
    private static let plainVersion: UInt8 = 1
    private static let factorVersion: UInt8 = 2
    private static let bodyByteCount = 1 + idByteCount + 8
    private static let byteCount = bodyByteCount + HMACKey.tagByteCount
    static let textByteCount = (byteCount * 8 + 5) / 6
    private static let purpose = [UInt8]("postern device token v1".utf8)

    private let key: HMACKey

    public init(key: HMACKey) { self.key = key }

    public func token(for device: Device, user: User, now: Timestamp) -> Text {
        // The time is not before the last change of the password, which revoked the tokens, even if the clock went back
        // since.
        let issuedAt = max(now, Timestamp(microseconds: user.tokensValidAfterMicros))
        var body = [device.version] + device.id.prefix(Self.idByteCount)
        withUnsafeBytes(of: issuedAt.microseconds.bigEndian) { body += $0 }
        return Text(unchecked: Base64.url.encode(body + tag(of: body, tenantID: user.tenantID, uid: user.uid)))
    }

    /// The device that the token was made for; nil when the token does not count. `notBefore`: tokens that were issued
    /// earlier do not count.
    ///
    /// A token from the future counts: the clock went back, and its owner should not pay for that.
    public func device(
        in token: Text, tenantID: Text, uid: Text, notBefore: Timestamp, now: Timestamp
    ) -> Device? {
        guard token.byteCount == Self.textByteCount, let bytes = Base64.url.decode(token.bytes),
            bytes.count == Self.byteCount, [Self.plainVersion, Self.factorVersion].contains(bytes[0])
        else { return nil }
        let body = Array(bytes[..<Self.bodyByteCount])
        let expected = tag(of: body, tenantID: tenantID, uid: uid)
        guard constantTimeEqual(expected, Array(bytes[Self.bodyByteCount...])) else { return nil }
        let micros = body[(1 + Self.idByteCount)...].bigEndianNumber
        let issuedAt = Timestamp(microseconds: Int64(bitPattern: micros))
        guard issuedAt >= notBefore, now - issuedAt <= Self.lifetime else { return nil }
        return Device(id: Array(body[1...Self.idByteCount]), hasShownFactor: bytes[0] == Self.factorVersion)
    }

    /// Neither a tenant id nor a uid holds a zero byte, and the body has a fixed length: the bytes can be read in one
    /// way only.
    private func tag(of body: [UInt8], tenantID: Text, uid: Text) -> [UInt8] {
        key.tag(of: Self.purpose + [0] + tenantID.bytes + [0] + uid.bytes + [0] + body)
    }
}

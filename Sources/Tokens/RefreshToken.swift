public import Base
public import Crypto

/// A refresh token: opaque to clients, inside it `version ‖ key id ‖ session id ‖ counter ‖ HMAC-SHA256`, base64url.
///
/// The successor of a token can be computed from its session's counter, so a rotation stores only a number.
public struct RefreshToken: Sendable, Equatable {
    /// 16 bytes.
    public var sessionID: [UInt8]
    public var counter: UInt64

    public init(sessionID: [UInt8], counter: UInt64) {
        precondition(sessionID.count == 16, "a session id has 16 bytes")
        self.sessionID = sessionID
        self.counter = counter
    }

    static let version: UInt8 = 1
    static let bodyByteCount = 1 + 4 + 16 + 8
    static let byteCount = bodyByteCount + 32
}

/// Makes and checks refresh tokens. Any thread.
///
/// The key id names the key of the HMAC. A restored backup makes a new key, so that every earlier refresh token is then
/// INVALID_REFRESH_TOKEN. Otherwise a revoked session could become valid again.
public final class RefreshTokenCodec: Sendable {
    private let key: HMACKey
    private let keyID: [UInt8]
    private static let purpose = [UInt8]("postern refresh token v1".utf8)

    /// `keyID` has four bytes.
    public init(key: HMACKey, keyID: [UInt8]) {
        precondition(keyID.count == 4, "a refresh key id has 4 bytes")
        self.key = key
        self.keyID = keyID
    }

    public func encode(_ token: RefreshToken) -> Text {
        var body: [UInt8] = [RefreshToken.version]
        body.reserveCapacity(RefreshToken.byteCount)
        body += keyID
        body += token.sessionID
        withUnsafeBytes(of: token.counter.bigEndian) { body += $0 }
        body += key.tag(of: Self.purpose + body)
        return Text(unchecked: Base64.url.encode(body))
    }

    /// Nil for any text that this codec did not make.
    public func decode(_ text: Text) -> RefreshToken? {
        guard text.byteCount == (RefreshToken.byteCount * 8 + 5) / 6, let bytes = Base64.url.decode(text.bytes),
            bytes.count == RefreshToken.byteCount, bytes[0] == RefreshToken.version, bytes[1..<5].elementsEqual(keyID)
        else { return nil }
        let code = key.tag(of: Self.purpose + bytes[..<RefreshToken.bodyByteCount])
        guard constantTimeEqual(code, Array(bytes[RefreshToken.bodyByteCount...])) else { return nil }
        let counter = bytes[21..<29].bigEndianNumber
        return RefreshToken(sessionID: Array(bytes[5..<21]), counter: counter)
    }
}

public import Base
import Synchronization

/// The claims of a genuine ID token. The caller checks whether the token is revoked: `uid`, `sessionID`, `generation`.
public final class VerifiedToken: Sendable {
    public let uid: Text
    public let tenantID: Text
    public let sessionID: [UInt8]
    public let generation: Int64
    public let authTime: Timestamp
    public let issuedAt: Timestamp
    public let expiresAt: Timestamp
    public let signInProvider: Text
    public let payload: [UInt8]
    package let keyID: Text
    private let keptNote = Mutex(Kept<any AnyObject & Sendable>.unasked)
    private let keptAnswer = Mutex(Kept<[UInt8]>.unasked)

    /// Kept from the second time on, as long as the token is remembered: a token that comes only once takes no more
    /// memory.
    private enum Kept<Value: Sendable> {
        case unasked
        case askedOnce
        case kept(Value)

        var value: Value? { if case .kept(let value) = self { value } else { nil } }

        mutating func keep(_ makeValue: @autoclosure () -> Value) {
            self = if case .unasked = self { .askedOnce } else { .kept(makeValue()) }
        }
    }

    package init?(payload: [UInt8], keyID: Text, issuer: Text, audience: Text) {
        guard let claims = TokenClaims(payload, issuer: issuer, audience: audience) else { return nil }
        self.uid = claims.uid
        self.tenantID = claims.tenantID
        self.sessionID = claims.sessionID
        self.generation = claims.generation
        self.authTime = Timestamp(seconds: claims.authTime)
        self.issuedAt = Timestamp(seconds: claims.issuedAt)
        self.expiresAt = Timestamp(seconds: claims.expiresAt)
        self.signInProvider = claims.signInProvider
        self.payload = payload
        self.keyID = keyID
    }

    /// The encoded response that a server gives for the token, which is the same each time.
    package func answer(_ encode: () -> [UInt8]) -> [UInt8] {
        keptAnswer.withLock { answer in
            if let bytes = answer.value { return bytes }
            let bytes = encode()
            answer.keep(bytes)
            return bytes
        }
    }

    /// An object that the caller keeps with the token.
    package var note: (any AnyObject & Sendable)? { keptNote.withLock { $0.value } }

    /// Keeps the object in the place of an earlier one.
    package func keep(_ makeNote: () -> any AnyObject & Sendable) {
        keptNote.withLock { $0.keep(makeNote()) }
    }
}

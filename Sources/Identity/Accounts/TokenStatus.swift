import Base
import Messages
import Rules
import Store
import Tokens

// What deciding about a token needs of the records, read without decoding the rest: it is asked for on every request of
// every service behind Postern.

/// What the rows of a token's user and session said, kept beside a token that is used again and again.
final class TokenStatus: Sendable {
    let dated: Dated<TokenRows>
    let places: (RowMarks.Place, RowMarks.Place)

    init(_ dated: Dated<TokenRows>, _ places: (RowMarks.Place, RowMarks.Place)) {
        self.dated = dated
        self.places = places
    }
}

/// What a token's user and session said.
struct TokenRows: Sendable {
    let user: UserStatus
    let session: SessionStatus

    /// The rows are the same as when they were read; the time and the settings may not be.
    func allow(_ token: VerifiedToken, settings: TenantSettings, now: Timestamp) -> Bool {
        !user.isDisabled && session.belongsToUser && token.generation >= user.tokensValidAfterMicros
            && session.refusedCause(settings: settings, now: now) == nil
    }
}

/// What deciding about a token needs of a user, read without decoding the rest.
struct UserStatus {
    private(set) var isDisabled = false
    private(set) var tokensValidAfterMicros: Int64 = 0

    /// Nil when the bytes are no message.
    init?(_ encodedUser: UnsafeRawBufferPointer) {
        var reader = FieldReader(encodedUser)
        do throws(DecodeError) {
            while let field = try reader.next() {
                switch (field.number, field.value) {
                case (User.FieldNumber.disabled, .varint(let value)): isDisabled = value != 0
                case (User.FieldNumber.tokensValidAfterMicros, .varint(let value)):
                    tokensValidAfterMicros = Int64(bitPattern: value)
                default: break
                }
            }
        } catch {
            return nil
        }
    }
}

/// What deciding about a token needs of its session.
struct SessionStatus {
    private typealias Fields = StoredSession.FieldNumber

    private(set) var belongsToUser = false
    private var end = SessionEnd.unspecified
    private var createdAtMicros: Int64 = 0
    private var lastUsedAtMicros: Int64 = 0

    /// Nil when the bytes are no session.
    init?(_ encodedSession: UnsafeRawBufferPointer, tenantID: Text, uid: Text) {
        var isTenant = tenantID.isEmpty
        var isUser = false
        var reader = FieldReader(encodedSession)
        do throws(DecodeError) {
            while let field = try reader.next() {
                switch (field.number, field.value) {
                case (Fields.tenantID, .bytes(let bytes)):
                    isTenant = tenantID.bytes.withUnsafeBytes { $0.hasSameBytes(as: bytes) }
                case (Fields.uid, .bytes(let bytes)): isUser = uid.bytes.withUnsafeBytes { $0.hasSameBytes(as: bytes) }
                case (Fields.createdAtMicros, .varint(let value)): createdAtMicros = Int64(bitPattern: value)
                case (Fields.lastUsedAtMicros, .varint(let value)): lastUsedAtMicros = Int64(bitPattern: value)
                case (Fields.end, .varint(let value)):
                    guard let end = SessionEnd(rawValue: Int32(truncatingIfNeeded: value)) else { return nil }
                    self.end = end
                default: break
                }
            }
        } catch {
            return nil
        }
        belongsToUser = isTenant && isUser
    }

    func refusedCause(settings: TenantSettings, now: Timestamp) -> RefreshDecision.RefusedCause? {
        StoredSession.refusedCause(
            end: end, createdAtMicros: createdAtMicros, lastUsedAtMicros: lastUsedAtMicros, settings: settings, now: now
        )
    }
}

import Base
import Messages
import Rules
import Store
public import Tokens

// The parts of the records that the decision on a token needs, read without decoding the rest: every request of every
// service behind Postern asks for this decision.

/// The content of the rows of a token's user and session, kept beside a token that is used again and again.
final class TokenStatus: Sendable {
    let dated: Dated<TokenRows>
    let places: (RowMarks.Place, RowMarks.Place)

    init(_ dated: Dated<TokenRows>, _ places: (RowMarks.Place, RowMarks.Place)) {
        self.dated = dated
        self.places = places
    }
}

/// What a token was issued under. Small: whatever a token begins and goes on, such as a stream, keeps it.
public struct TokenOrigin: Sendable {
    let generation: Int64
    let keyID: Text

    /// Requires that no change has ended the tokens from before it: TOKEN_EXPIRED with the change's cause.
    ///
    /// A token of a generation that is still to come was signed for nobody: either the store has lost the change since,
    /// or somebody has the signing key.
    func checkGeneration(of account: Account) throws(Failure) {
        if generation < account.user.tokensValidAfterMicros {
            throw Failure.tokenExpired(revokedFor: account.tokensRevokedFor)
        }
        if generation > account.user.tokensValidAfterMicros { throw Failure.tokenExpired(cause: .expired) }
    }
}

extension VerifiedToken {
    public var origin: TokenOrigin { TokenOrigin(generation: generation, keyID: keyID) }
}

/// The status of a token's user and session, as their rows had it.
struct TokenRows: Sendable {
    let user: UserStatus
    let session: SessionStatus

    /// Decides on rows that are the same as when they were read; the time and the settings may have changed.
    func allow(_ token: VerifiedToken, settings: TenantSettings, now: Timestamp) -> Bool {
        !user.isDisabled && session.belongsToUser && token.generation == user.tokensValidAfterMicros
            && session.refusedCause(settings: settings, now: now) == nil
    }
}

/// The fields of a user that the decision on a token needs, read without decoding the rest.
struct UserStatus {
    private(set) var isDisabled = false
    private(set) var tokensValidAfterMicros: Int64 = 0

    /// Nil when the bytes are not a message.
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

/// The fields of a session that the decision on a token needs.
struct SessionStatus {
    private typealias Fields = StoredSession.FieldNumber

    private(set) var belongsToUser = false
    private var end = SessionEnd.unspecified
    private var createdAtMicros: Int64 = 0
    private var lastUsedAtMicros: Int64 = 0
    private var authTimeMicros: Int64 = 0

    /// When the user last proved who they are in this session.
    var authTime: Timestamp { Timestamp(microseconds: authTimeMicros) }

    /// Nil when the bytes are not a session.
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
                case (Fields.authTimeMicros, .varint(let value)): authTimeMicros = Int64(bitPattern: value)
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

import Base
import Crypto
import Messages
import Rules
import Store

/// Temporary proofs: each proves, sealed, for one tenant and a short time, that somebody showed the code of a number
/// that belongs to another account. With the proof that account can be entered without another code.
///
/// All proofs from one code and the code itself count as one: when one of them was used, all are void. Any thread.
struct TemporaryProofs: Sendable {
    static let lifetime = Duration.minutes(10)

    private let sealing: SealingKey
    private let random: RandomSource

    init(sealing: SealingKey, random: RandomSource) {
        self.sealing = sealing
        self.random = random
    }

    /// A proof that is refused again keeps its end: a refusal does not extend it.
    func token(for proved: ProvedNumber, tenantID: Text, now: Timestamp) throws -> Text {
        let content = SealedTemporaryProof(
            tenantID: tenantID, phoneNumber: proved.number.text, sessionHash: proved.sessionHash,
            expiresAtMicros: (proved.proofEndsAt ?? now + Self.lifetime).microseconds)
        let sealed = try sealing.seal(Secret(content.encoded()), context: Self.context(tenantID), random: random)
        return Text(unchecked: Base64.url.encode(sealed))
    }

    /// INVALID_TEMPORARY_PROOF.
    func proved(
        _ token: Secret, _ number: PhoneNumber, tenantID: Text, now: Timestamp
    ) throws(Failure) -> ProvedNumber {
        guard let sealed = token.withBytes({ Base64.url.decode($0) }),
            let opened = try? sealing.open(sealed, context: Self.context(tenantID)),
            let content = try? opened.withBytes({ try SealedTemporaryProof(decoding: $0) }),
            content.tenantID == tenantID, content.phoneNumber == number.text,
            now < Timestamp(microseconds: content.expiresAtMicros),
            Timestamp(microseconds: content.expiresAtMicros) - now <= Self.lifetime + TimeKeeping.slack
        else { throw .invalidTemporaryProof }
        return ProvedNumber(
            number: number, sessionHash: content.sessionHash,
            proofEndsAt: Timestamp(microseconds: content.expiresAtMicros))
    }

    private static func context(_ tenantID: Text) -> [UInt8] { [UInt8]("temporary proof".utf8) + [0] + tenantID.bytes }
}

extension WriteTransaction {
    /// Uses up all temporary proofs from one code: one of them is shown, or the code. INVALID_TEMPORARY_PROOF when one
    /// was used before.
    func useTemporaryProofs(of proved: ProvedNumber, tenantID: Text, now: Timestamp) throws {
        let key = HashKey(
            Digest.sha256([UInt8]("temporary proof".utf8) + [0] + tenantID.bytes + [0] + proved.sessionHash))
        if let end = proved.proofEndsAt, try reading.isSpent(.temporaryProof, until: end) {
            throw Failure.invalidTemporaryProof
        }
        // The others may end later than the one that is shown, but none later than this.
        let end = now + TemporaryProofs.lifetime + TimeKeeping.slack
        guard try put(ifAbsent: Tables.usedProofs, key, StoredUsedTokenID(expiresAtMicros: end.microseconds)) else {
            throw Failure.invalidTemporaryProof
        }
        try scheduleExpiry(at: end + StoredUsedTokenID.keptAfterEnd, Tables.usedProofs, key)
    }
}

extension Failure {
    static let invalidTemporaryProof = Failure(
        .invalidTemporaryProof, "The proof is not this number's, used, or older than ten minutes; ask for a code.")
}

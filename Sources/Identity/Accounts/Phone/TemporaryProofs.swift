import Base
import Crypto
import Messages
import Rules
import Store

/// Temporary proofs: each proves, sealed, for one tenant and a short time, that somebody showed the code of a number
/// that belongs to another account. With the proof its user can sign in without another code.
///
/// All proofs from one code and the code itself count as one: when one of them was used, all are void. Any thread.
struct TemporaryProofs: Sendable {
    private let seal: ProofSeal<SealedTemporaryProof>

    /// `epoch` is the store's.
    init(sealing: SealingKey, random: RandomSource, epoch: [UInt8]) {
        self.seal = ProofSeal(sealing: sealing, random: random, epoch: epoch)
    }

    /// A proof that is refused again keeps its end: a refusal does not extend it.
    func token(for proved: ProvedNumber, tenantID: Text, now: Timestamp) throws -> Text {
        let end = proved.proofEndsAt ?? now + SealedTemporaryProof.lifetime
        return try seal.token(
            SealedTemporaryProof(
                tenantID: tenantID, phoneNumber: proved.number.text, sessionHash: proved.sessionHash,
                expiresAtMicros: end.microseconds))
    }

    /// INVALID_TEMPORARY_PROOF.
    func proved(
        _ token: Secret, _ number: PhoneNumber, tenantID: Text, now: Timestamp
    ) throws(Failure) -> ProvedNumber {
        guard let content = token.withBytes({ seal.content(of: $0, tenantID: tenantID, now: now) }),
            content.phoneNumber == number.text
        else { throw .invalidTemporaryProof }
        return ProvedNumber(
            number: number, sessionHash: content.sessionHash,
            proofEndsAt: Timestamp(microseconds: content.expiresAtMicros))
    }
}

extension SealedTemporaryProof: SealedProof {
    static var kind: String { "temporary proof" }
    static var lifetime: Duration { .minutes(10) }
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
        let end = now + SealedTemporaryProof.lifetime + TimeKeeping.slack
        guard try recordUse(of: key, in: Tables.usedProofs, until: end) else { throw Failure.invalidTemporaryProof }
    }
}

extension Failure {
    static let invalidTemporaryProof = Failure(
        .invalidTemporaryProof, "The proof is not this number's, used, or older than ten minutes; ask for a code.")
}

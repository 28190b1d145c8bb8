import Base
import Crypto
import Messages
import Rules
import Store

/// Seals the secrets of authenticator apps, and makes the hashes of recovery codes. Each is bound to its user: a value
/// that was stored for one user does not count for another. Any thread.
struct FactorSecrets: Sendable {
    private let sealing: SealingKey
    private let recoveryKey: HMACKey
    let random: RandomSource

    init(masterKey: MasterKey, random: RandomSource) {
        self.sealing = masterKey.sealing
        self.recoveryKey = masterKey.hmac("recovery code")
        self.random = random
    }

    func seal(_ secret: Secret, of key: UserKey) throws -> [UInt8] {
        try sealing.seal(secret, context: Self.context("totp", key), random: random)
    }

    func open(_ sealed: [UInt8], of key: UserKey) throws -> Secret {
        try sealing.open(sealed, context: Self.context("totp", key))
    }

    /// `code` in its canonical form.
    func tag(ofRecoveryCode code: [UInt8], of key: UserKey) -> [UInt8] {
        recoveryKey.tag(of: Self.context("recovery", key) + [0] + code)
    }

    /// New recovery codes, and the hashes that the store keeps of them.
    func makeRecoveryCodes(of key: UserKey) -> (codes: [Secret], tags: [[UInt8]]) {
        let codes = RecoveryCodes.make(random)
        return (codes, codes.compactMap(RecoveryCodes.canonical).map { tag(ofRecoveryCode: $0, of: key) })
    }

    private static func context(_ purpose: String, _ key: UserKey) -> [UInt8] {
        [UInt8](purpose.utf8) + [0] + key.tenant.bytes + [0] + key.uid.bytes
    }
}

import Base
public import Crypto

/// Hashes the identifiers of refusals. Equal identifiers of a tenant have equal hashes. Any thread.
///
/// The key is made of the tenant's secret, which lies in the store, and of a key that is derived from the master key.
/// Addresses can be tried against a hash only by somebody who has both.
public struct DenialIdentifiers: Sendable {
    private let key: HMACKey

    public init(masterKey: MasterKey) { key = masterKey.hmac("denial identifier") }

    /// `secret` is the tenant's. 32 bytes.
    func hash(of identifier: [UInt8], secret: Secret) -> [UInt8] {
        let tenantKey = HMACKey(Secret(secret.withBytes { key.tag(of: $0) }))
        return tenantKey.tag(of: identifier)
    }

    /// The hashes that refusals of the identifier may have: servers before this one took the tenant's secret as the
    /// key, and their refusals are kept.
    func possibleHashes(of identifier: [UInt8], secret: Secret) -> [[UInt8]] {
        [hash(of: identifier, secret: secret), HMACKey(secret).tag(of: identifier)]
    }
}

import Base
import Crypto
import Tokens

/// A token to be signed, and the key for it.
struct SigningOrder: Sendable {
    let claims: IDTokenClaims
    let entry: KeySet.Entry
    let key: SigningKey
    let byteCountMax: Int

    /// Whether the signature takes so long that it would hold up a loop.
    var isForPool: Bool {
        switch entry.publicKey.algorithm {
        case .rs256: true
        case .es256, .edDSA: false
        }
    }

    /// The signed token. CLAIMS_TOO_LARGE
    func token() throws(Failure) -> Text {
        let signatureMax = (key.signatureByteCount * 4 + 2) / 3
        let encodedMax = max(0, byteCountMax - entry.tokenPrefix.count - 1 - signatureMax)
        guard let payload = claims.payload(byteCountMax: encodedMax * 3 / 4) else { throw Self.claimsTooLarge }
        let signedBytes = entry.tokenPrefix + Base64.url.encode(payload)
        return Text(unchecked: signedBytes + [UInt8(ascii: ".")] + Base64.url.encode(key.sign(signedBytes)))
    }

    private static let claimsTooLarge = Failure(
        .claimsTooLarge,
        "The claims of the user and of the session do not fit into a token together; an admin can shorten them.")
}

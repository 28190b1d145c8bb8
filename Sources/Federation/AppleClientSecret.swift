import Base
import Crypto
import JSON
import Messages
import Rules

/// Makes client secrets for Apple: JWTs that the developer's key signs, valid for up to six months
/// (developer.apple.com/documentation/accountorganizationaldatasharing/creating-a-client-secret).
enum AppleClientSecret {
    private static let lifetime = Duration.minutes(5)

    /// Nil if the configuration has no Apple key: then its client secret is ready-made. Throws BAD_PRIVATE_KEY.
    static func make(_ configuration: ProviderConfiguration, now: Timestamp) throws(FederationError) -> Secret? {
        guard let apple = configuration.provider.apple else { return nil }
        guard let key = ApplePrivateKey.read(try configuration.clientSecret) else {
            throw .misconfigured(.badPrivateKey)
        }
        var header = JSONWriter()
        header.beginObject()
        header.member("alg", text: "ES256")
        header.member("kid", text: apple.keyID)
        header.endObject()
        var claims = JSONWriter()
        claims.beginObject()
        claims.member("iss", text: apple.teamID)
        claims.member("iat", integer: now.seconds)
        claims.member("exp", integer: (now + lifetime).seconds)
        claims.member("aud", text: configuration.known.issuer)
        claims.member("sub", text: configuration.provider.clientID)
        claims.endObject()
        let dot = [UInt8(ascii: ".")]
        let signed = Base64.url.encode(header.bytes) + dot + Base64.url.encode(claims.bytes)
        return Secret(signed + dot + Base64.url.encode(key.sign(signed)))
    }
}

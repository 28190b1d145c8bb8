import Base
import Crypto
import JSON

/// A public key as an admin uploads it: a PEM block "PUBLIC KEY", or a JWK.
enum UploadedPublicKey {
    static let byteCountMax = 8_192

    /// INVALID_PUBLIC_KEY for anything but a sound RSA key of 2,048 to 4,096 bits or a P-256 point. An RSA key takes 2
    /// ms and more: call this on the crypto pool.
    static func parse(_ text: [UInt8]) throws(Failure) -> VerificationKey {
        guard !text.isEmpty, text.count <= byteCountMax else {
            throw invalid("must be a PEM block \"PUBLIC KEY\" or a JWK, of at most \(byteCountMax) bytes")
        }
        let key: VerificationKey
        do throws(CryptoError) {
            if let found = try jwk(text) {
                key = found
            } else {
                key = try VerificationKey(spki: try PEM.decode("PUBLIC KEY", text))
            }
        } catch .unsupported {
            throw invalid("must be an RSA or a P-256 key, whose alg, use and key_ops, if given, are for signatures")
        } catch .outOfRange {
            throw invalid("an RSA key has 2,048 to 4,096 bits and an odd exponent from 65,537 on")
        } catch .unsoundKey {
            throw invalid("is a key that is known to be weak")
        } catch {
            throw invalid("must be a PEM block \"PUBLIC KEY\" or a JWK without private members")
        }
        guard key.algorithm != .edDSA else { throw invalid("must be an RSA or a P-256 key") }
        return key
    }

    /// Nil for a text that is not JSON. A private key is refused: sending one is a mistake that must be noticed.
    private static func jwk(_ text: [UInt8]) throws(CryptoError) -> VerificationKey? {
        guard let value = try? JSONValue(parsing: text), let members = value.object else { return nil }
        guard !members.contains(where: { privateMembers.contains($0.name) }) else { throw .malformed }
        let key = try VerificationKey(jwk: PublicJWK { value[$0]?.text })
        if let algorithm = value["alg"], algorithm.text != Text(key.algorithm.rawValue) { throw .unsupported }
        if let use = value["use"], use.text != "sig" { throw .unsupported }
        if let operations = value["key_ops"], !maySign(operations) { throw .unsupported }
        return key
    }

    /// RFC 7517 §4.3: the operations that the key is for. A public key for signatures has "verify", and no value occurs
    /// twice.
    private static func maySign(_ operations: JSONValue) -> Bool {
        guard let named = operations.array?.map(\.text), !named.contains(nil) else { return false }
        return named.contains("verify") && Set(named).count == named.count
    }

    private static let privateMembers: Set<Text> = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    private static func invalid(_ description: String) -> Failure {
        .invalid(.invalidPublicKey, field: "public_key", description)
    }
}

import Base
import Crypto
import JSON
import Synchronization
import TestSupport

@testable import Tokens

/// Makes tokens, genuine and otherwise, for a verifier that knows one key of each algorithm.
struct TokenForge {
    static let now = Timestamp(seconds: 1_800_000_000)
    static let issuer: Text = "https://issuer.test/p"
    static let audience: Text = "p"

    /// The keys are made once, because an RSA key takes long.
    private static let keys: [SigningAlgorithm: SigningKey] = Dictionary(
        uniqueKeysWithValues: SigningAlgorithm.allCases.map { ($0, SigningKey.generate($0)) })

    let published = PublishedKeySet()
    let verifier: IssuedTokenVerifier

    init(limits: Limits = Limits()) {
        verifier = IssuedTokenVerifier(
            keys: published, issuer: Self.issuer, audience: Self.audience, limits: limits,
            random: SeededRandom.source(seed: 1))
        publish()
    }

    static func key(_ algorithm: SigningAlgorithm) -> SigningKey { keys[algorithm]! }

    /// Publishes all keys, each with this `retiresAt`.
    func publish(retiresAt: Timestamp? = nil) {
        published.publish(
            KeySet(
                entries: SigningAlgorithm.allCases.map { algorithm in
                    let key = Self.key(algorithm)
                    let times = SigningKeyTimes(
                        sequence: 1, createdAt: .zero, signsFrom: .zero, retiresAt: retiresAt)
                    return KeySet.Entry(id: key.publicKey.keyID, publicKey: key.publicKey, times: times)
                }))
    }

    static func header(_ algorithm: SigningAlgorithm = .es256) -> JSONValue {
        [
            "alg": .string(Text(algorithm.rawValue)), "kid": .string(key(algorithm).publicKey.keyID), "typ": "JWT",
        ]
    }

    static let payload: JSONValue = [
        "iss": .string(issuer), "aud": .string(audience), "auth_time": 1_799_999_000, "user_id": "u1", "sub": "u1",
        "iat": 1_799_999_990, "exp": 1_800_003_590, "sid": "00112233445566778899aabbccddeeff",
        "gen": 1_799_999_000_000_000,
        "firebase": ["identities": [:], "sign_in_provider": "password", "tenant": "acme"],
    ]

    /// A token signed with the key of `algorithm`, whatever header and payload say.
    static func token(
        header: [UInt8], payload: [UInt8] = payload.serialized(), signedBy algorithm: SigningAlgorithm = .es256
    ) -> [UInt8] {
        let signed = Base64.url.encode(header) + [UInt8(ascii: ".")] + Base64.url.encode(payload)
        return signed + [UInt8(ascii: ".")] + Base64.url.encode(key(algorithm).sign(signed))
    }

    static func token(
        header: JSONValue, payload: JSONValue = payload, signedBy algorithm: SigningAlgorithm = .es256
    ) -> [UInt8] {
        token(header: header.serialized(), payload: payload.serialized(), signedBy: algorithm)
    }

    static func token(_ algorithm: SigningAlgorithm = .es256, payload: JSONValue = payload) -> [UInt8] {
        token(header: header(algorithm), payload: payload, signedBy: algorithm)
    }

    func error(_ token: [UInt8], now: Timestamp = now) -> TokenError? {
        do throws(TokenError) {
            _ = try verifier.verify(token, now: now)
            return nil
        } catch {
            return error
        }
    }
}

/// The three parts of a token, as text.
func parts(_ token: [UInt8]) -> [[UInt8]] {
    token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Array.init)
}

func joined(_ parts: [[UInt8]]) -> [UInt8] { Array(parts.joined(separator: [UInt8(ascii: ".")])) }

func utf8(_ text: String) -> [UInt8] { [UInt8](text.utf8) }

public import Base
public import Crypto
public import Messages

/// A password of another system as its export has it, and how it was hashed, for our checks and for the wire.
///
/// The vectors of firebase-admin-node's integration test are what Firebase itself takes. The others follow from them by
/// exchanging the function or the order; they compare our own computation with another program's (Python's hashlib).
public struct PasswordVector: Sendable, CustomStringConvertible {
    public let description: String
    public let scheme: PasswordScheme
    public let algorithm: PasswordHashSpec.Algorithm
    public let hash: [UInt8]

    public static let password: Text = "password"
    public static let salt = [UInt8]("NaCl".utf8)
    public static let keyID: Text = "theirs"
    public static let signerKey = Secret("secret")

    private init(
        _ description: String, _ scheme: PasswordScheme, _ algorithm: PasswordHashSpec.Algorithm, _ hash: [UInt8]
    ) {
        (self.description, self.scheme, self.algorithm, self.hash) = (description, scheme, algorithm, hash)
    }

    public static let all = digests + hmacs + derived

    private static let functions: [(HashFunction, PasswordHashFunction)] = [
        (.md5, .md5), (.sha1, .sha1), (.sha256, .sha256), (.sha512, .sha512),
    ]

    /// Digests as hex digits, a form that a digest may have: first salt before password, then password before salt.
    private static let digests: [PasswordVector] = [
        ("62d19f7e7ddcb5946728776d25e410ed", "f25b019a9470318d44d60e1416631f34"),
        ("e329d4054aff39056c09041993fe859a861d272f", "40274892d2fe01a6ab1e0fbde5c22b8312d10780"),
        (
            "b20ab74aa2549f7e13a0e886cb4471cc2e70fcd2ce8075c0ee6483abba6132f3",
            "028480971104b37691f41c430e59e07fd4c5ae0f53317b2aa2e06cf8ddbbfe10"
        ),
        (
            "da9d2cbdf3a00d37e5385ec72b9c1b1cffb4e65e2591d57c3fe145abea7a6873"
                + "d04bbb8119af53c8673c0dfc59b1f91c695d8c7e8777e56c40cda8f9c8110a63",
            "b586c87ff6c8fc785967676c961cc4bc35903435d63d9939ec8701f3fc59ebdf"
                + "14a6edee046a37750e46389123faa42c2ccef936774e23c1615a13accd785b09"
        ),
    ].enumerated().flatMap { index, hashes in
        let (function, name) = functions[index]
        let both: [(String, HashInputOrder, PasswordHashOrder)] = [
            (hashes.0, .saltFirst, .unspecified), (hashes.1, .passwordFirst, .passwordFirst),
        ]
        return both.map { hex, order, sent in
            PasswordVector(
                "\(function) \(order)", .digest(function, rounds: 1, order: order, hashesHex: false),
                .digest(DigestSpec(function: name, rounds: 1, order: sent)), [UInt8](hex.utf8))
        }
    }

    /// First password before salt, then salt before password.
    private static let hmacs: [PasswordVector] = [
        ("4tZGVrzeu9LZ9eWZ03FrLg==", "YZXdKOf2tNj3E9k4RWrpnw=="),
        ("tSjltw8SZxad1AY6k8wDYCwUeyI=", "cQNaeanwc3GDmB/I3tG5LcWkhx8="),
        ("C5WKh+Qa5RkMlq+h5DX5XKsBOsQt/DEKEaUBAMQqrlI=", "ExOA8YX6DO2P838cxsMMdHTddVwTeqjm1H9BMFO7qWE="),
        (
            "yoFsygT+IMma1lMv+IqBvfHM1DCminat6m9ku6Re5nl8QSy9Z3BwPG9FnejSRcu99tK4xSVVkY6I9euOf8nmQA==",
            "1BpFtuBO0eX0GvrmiNttaT90HJDzQp286zZGGkNh2aMRjqOAttVRKWPDvY3hNyvXMoiwxXD6ODLT/pLy/WFcpw=="
        ),
    ].enumerated().flatMap { index, hashes in
        let (function, name) = functions[index]
        let both: [(String, HashInputOrder, PasswordHashOrder)] = [
            (hashes.0, .passwordFirst, .unspecified), (hashes.1, .saltFirst, .saltFirst),
        ]
        return both.map { hash, order, sent in
            PasswordVector(
                "HMAC \(function) \(order)", .hmac(function, order: order, signerKeyID: keyID),
                .hmac(HmacSpec(function: name, signerKey: signerKey, order: sent)), base64(hash))
        }
    }

    private static let derived = [
        PasswordVector(
            "PBKDF2 SHA-256", .pbkdf2(.sha256, rounds: 100_000),
            .pbkdf2(Pbkdf2Spec(function: .sha256, rounds: 100_000)),
            base64("5VnqZoKMOie1mhCQGRw7u1FV5Kv8Yb8uxEArtVAl0vSlwAQqXe8VxejCRe5enxUyNN4OWQ60PGRIVPZzEvcQtw==")),
        PasswordVector(
            "PBKDF2 SHA-1", .pbkdf2(.sha1, rounds: 1_000), .pbkdf2(Pbkdf2Spec(function: .sha1, rounds: 1_000)),
            base64("lyyzCFlAUpkzVJDKKPSl1PyJGrk=")),
        PasswordVector(
            "scrypt", .scrypt(costExponent: 10, blockSize: 8, lanes: 16),
            .scrypt(ScryptSpec(memoryCost: 1_024, blockSize: 8, parallelization: 16)),
            base64("/bq+HJ00cgB4VucZDQHp/nxq18vII3gw53N2Y0s3MWIurzDZLiKjiG/xCSedmDDaxyevuUqD7m2DYMvfoswGQA==")),
    ]

    private static func base64(_ text: String) -> [UInt8] {
        guard let bytes = Base64.standard.decode([UInt8](text.utf8)) else { preconditionFailure("no base64: \(text)") }
        return bytes
    }
}

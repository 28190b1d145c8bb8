import Base
import Crypto
import TestSupport
import Testing

/// Hashes of other systems, apart from Firebase's own scrypt and bcrypt.
@Suite struct ForeignHashTests {
    private static func verifies(_ credential: PasswordCredential, _ password: Text) throws -> Bool {
        try credential.verify(Secret(password.bytes)) { $0 == PasswordVector.keyID ? PasswordVector.signerKey : nil }
    }

    @Test(arguments: PasswordVector.all)
    func `What others hashed is checked as they do, and keeps its form`(_ vector: PasswordVector) throws {
        let imported = try PasswordCredential(vector.scheme, hash: vector.hash, salt: PasswordVector.salt)
        let stored = try PasswordCredential(stored: imported.stored)
        #expect(stored.stored == imported.stored && stored.kind == imported.kind)
        #expect(stored.parts.scheme == vector.scheme && stored.parts.salt == PasswordVector.salt)
        #expect(stored.needsRehash(under: .standard))
        #expect(try Self.verifies(stored, PasswordVector.password))
        for wrong in ["", "passwor", "password ", "Password", "NaClpassword"] as [Text] {
            #expect(try !Self.verifies(stored, wrong), "\(wrong)")
        }
        let again = try PasswordCredential(stored.parts.scheme, hash: stored.parts.hash, salt: stored.parts.salt)
        #expect(again.stored == stored.stored)
    }

    @Test(arguments: PasswordVector.all)
    func `A decoy costs what the hash does`(_ vector: PasswordVector) throws {
        let real = try PasswordCredential(vector.scheme, hash: vector.hash, salt: PasswordVector.salt)
        let decoy = try #require(PasswordCredential.decoy(cost: real.cost, random: .system))
        #expect(decoy.cost == real.cost && decoy.kind == real.kind && decoy.work == real.work)
        #expect(try !decoy.verify(Secret("password")) { _ in PasswordVector.signerKey })
    }

    /// Computed with Python: h = sha1(salt + password), then h = sha1(h) or h = sha1(h.hex()), four times more.
    @Test(arguments: [
        (false, "f77a2effc2810f851f678b60095bf52be92cabb5"),
        (true, "d7408436ae09d327f79a3e214a46d4de1612ef14"),
    ])
    func `Further rounds hash the digest, or its hex digits`(_ hashesHex: Bool, _ digest: String) throws {
        let scheme = PasswordScheme.digest(.sha1, rounds: 5, order: .saltFirst, hashesHex: hashesHex)
        let upper = [UInt8](digest.uppercased().utf8)
        for written in [[UInt8](digest.utf8), upper] {
            let credential = try PasswordCredential(scheme, hash: written, salt: PasswordVector.salt)
            #expect(try Self.verifies(credential, PasswordVector.password))
        }
    }

    @Test func `An HMAC without its key is not known`() throws {
        let scheme = PasswordScheme.hmac(.sha256, order: .passwordFirst, signerKeyID: "k")
        let credential = try PasswordCredential(scheme, hash: [UInt8](repeating: 1, count: 32), salt: [])
        #expect(throws: CryptoError.unknownKey(id: "k")) { try credential.verify(Secret("x")) }
        #expect(try !credential.verify(Secret("")) { _ in Secret("") })
    }

    @Test(
        arguments: [
            .digest(.sha1, rounds: -1, order: .saltFirst, hashesHex: false),
            .digest(.sha1, rounds: 8_193, order: .saltFirst, hashesHex: false),
            .digest(.sha1, rounds: .max, order: .saltFirst, hashesHex: false),
            .pbkdf2(.sha1, rounds: 0), .pbkdf2(.sha1, rounds: 10_000_001), .pbkdf2(.sha256, rounds: .min),
            .scrypt(costExponent: 0, blockSize: 8, lanes: 1), .scrypt(costExponent: 21, blockSize: 1, lanes: 1),
            .scrypt(costExponent: 20, blockSize: 32, lanes: 1), .scrypt(costExponent: 10, blockSize: 0, lanes: 1),
            .scrypt(costExponent: 10, blockSize: 33, lanes: 1), .scrypt(costExponent: 10, blockSize: 8, lanes: 0),
            .scrypt(costExponent: 10, blockSize: 8, lanes: 65),
            .scrypt(costExponent: .max, blockSize: .max, lanes: .max),
            .scrypt(costExponent: 16, blockSize: 1, lanes: 1),
        ] as [PasswordScheme])
    func `Numbers have bounds`(_ scheme: PasswordScheme) {
        #expect(throws: CryptoError.outOfRange) { try scheme.check() }
    }

    @Test func `Schemes within their bounds are good, and lengths have bounds too`() throws {
        for scheme in [
            .digest(.sha512, rounds: 8_192, order: .saltFirst, hashesHex: true), .pbkdf2(.sha512, rounds: 10_000_000),
            .scrypt(costExponent: 20, blockSize: 2, lanes: 64), .hmac(.md5, order: .saltFirst, signerKeyID: "a"),
        ] as [PasswordScheme] {
            #expect(throws: Never.self) { try scheme.check() }
        }
        #expect(throws: CryptoError.unsupported) { try PasswordScheme.pbkdf2(.md5, rounds: 1).check() }
        func made(_ scheme: PasswordScheme, _ count: Int, salt: Int = 0) throws(CryptoError) {
            _ = try PasswordCredential(
                scheme, hash: [UInt8](repeating: 0x7A, count: count), salt: [UInt8](repeating: 0, count: salt))
        }
        let digest = PasswordScheme.digest(.sha256, rounds: 1, order: .saltFirst, hashesHex: false)
        #expect(throws: Never.self) { try made(digest, 32, salt: 128) }
        #expect(throws: CryptoError.outOfRange) { try made(digest, 32, salt: 129) }
        // 64 characters, but no hex digits.
        for count in [0, 31, 33, 63, 64] { #expect(throws: CryptoError.malformed) { try made(digest, count) } }
        for count in [15, 129] {
            #expect(throws: CryptoError.outOfRange) { try made(.pbkdf2(.sha1, rounds: 1), count) }
            #expect(throws: CryptoError.outOfRange) {
                try made(.scrypt(costExponent: 1, blockSize: 1, lanes: 1), count)
            }
        }
    }

    @Test(
        arguments: [
            "$sha256", "$sha256$r=1,p=0,h=0", "$sha256$r=1,p=2,h=0$AA$AA", "$sha256$r=1,p=0,h=0$AA$AA", "$sha256$$$",
            "$hmac-sha256$p=1$AA$key$AA", "$hmac-$p=1$AA$key$AA", "$pbkdf2-sha1$i=1,l=17$AA$AAAAAAAAAAAAAAAAAAAAAA",
            "$pbkdf2-sha1$i=1$AA$AAAAAAAAAAAAAAAAAAAAAA", "$scrypt$ln=1,r=1,p=1$AA", "$scrypt", "$pbkdf2-",
            "$hmac-sha256",
            "$sha3$r=1$AA$AA",
        ] as [Text])
    func `What is no stored form is none`(_ text: Text) {
        #expect(throws: CryptoError.self) { try PasswordCredential(stored: text) }
        _ = PasswordCredential.decoy(cost: text, random: .system)
    }
}

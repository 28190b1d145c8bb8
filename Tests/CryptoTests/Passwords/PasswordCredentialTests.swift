import Base
import TestSupport
import Testing

@testable import Crypto

@Suite struct PasswordCredentialTests {
    private func credential(_ stored: String) throws(CryptoError) -> PasswordCredential {
        try PasswordCredential(stored: Text(stored))
    }

    private func error(_ stored: String) -> CryptoError? {
        do throws(CryptoError) {
            _ = try credential(stored)
            return nil
        } catch {
            return error
        }
    }

    /// github.com/P-H-C/phc-winner-argon2, src/test.c: salts of 8 bytes, the last one with two lanes.
    @Test(arguments: [
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc",
    ])
    func argon2idIsTheReferencesOne(stored: String) throws {
        let hash = try credential(stored)
        #expect(hash.kind == .argon2id)
        #expect(hash.stored.string == stored)
        #expect(try hash.verify(Secret("password")))
        #expect(try !hash.verify(Secret("Password")))
        #expect(hash.needsRehash(under: .standard))
    }

    /// Hashes in our own form take another path through libsodium than foreign ones: both must agree.
    @Test func bothWaysThroughLibsodiumAgree() throws {
        let profile = try PasswordHashProfile(memoryKiB: 64, passes: 3)
        let salt = utf8("0123456789abcdef")
        // Computed with the reference implementation (libargon2).
        let stored = "$argon2id$v=19$m=64,t=3,p=1$MDEyMzQ1Njc4OWFiY2RlZg$hExpqdnKxo68mIFDWp7fZ/KJz6oh3OWkdViH7cJuJKw"
        let tag = try Argon2idHash.tag(of: Secret("pässwörd"), memoryKiB: 64, passes: 3, salt: salt)
        #expect(try tag == credentialTag(stored))
        #expect(try credential(stored).verify(Secret("pässwörd")))
        let longTag = try credential(
            "$argon2id$v=19$m=64,t=3,p=4$"
                + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg"
                + "$gJyeUx5DXCz7QBtxmWi4nzgKbGAltrZwVJg/PvBvEd+M/32yyv/B32ar9OWu59wrfv9KZR+vulXBmqVL27tbPQ")
        #expect(try longTag.verify(Secret("pässwörd")))
        #expect(try !longTag.verify(Secret("passwort")))
        #expect(longTag.needsRehash(under: profile))
    }

    private func credentialTag(_ stored: String) throws -> [UInt8] {
        try Argon2idHash(try #require(PHCString(Text(stored)))).tag
    }

    @Test(arguments: ["", "x", "pässwörd", String(repeating: "long ", count: 800)])
    func aNewHashFitsItsPasswordOnly(password: String) throws {
        let hash = try PasswordCredential.hash(Secret(password), profile: .cheap, random: .system)
        #expect(try hash.verify(Secret(password)))
        #expect(try !hash.verify(Secret(password + "x")))
        let read = try PasswordCredential(stored: hash.stored)
        #expect(try read.verify(Secret(password)))
        #expect(!read.needsRehash(under: .cheap))
        #expect(read.needsRehash(under: .standard))
    }

    @Test func theStandardProfileIsWrittenAsAPHCString() throws {
        let hash = try PasswordCredential.hash(Secret("x"), profile: .standard, random: .system)
        #expect(hash.stored.string.hasPrefix("$argon2id$v=19$m=19456,t=2,p=1$"))
        #expect(hash.stored.byteCount == "$argon2id$v=19$m=19456,t=2,p=1$".utf8.count + 22 + 1 + 43)
        #expect(try hash.verify(Secret("x")))
        #expect(!hash.needsRehash(under: .standard))
        #expect(hash.needsRehash(under: .moreMemory))
    }

    @Test func aDecoyFitsNoPasswordAndLooksReal() throws {
        let decoy = PasswordCredential.decoy(profile: .cheap, random: .system)
        #expect(try !decoy.verify(Secret("")))
        #expect(try !PasswordCredential(stored: decoy.stored).verify(Secret("password")))
        #expect(!decoy.needsRehash(under: .cheap))
    }

    @Test(
        arguments: [
            (
                "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc",
                "$argon2id$v=19$m=256,t=2,p=2"
            ),
            ("$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "$2b$05"),
            (
                "$firebase-scrypt$r=3,m=9$c29tZXNhbHQ$Bw$key$" + String(repeating: "A", count: 43),
                "$firebase-scrypt$r=3,m=9"
            ),
        ])
    func aDecoyCostsWhatARealOneCosts(stored: String, cost: Text) throws {
        let real = try credential(stored)
        let decoy = try #require(PasswordCredential.decoy(cost: real.cost, random: .system))
        #expect(real.cost == cost && decoy.cost == cost && decoy.kind == real.kind)
        #expect(try !decoy.verify(Secret("password"), signerKeys: { _ in Secret([UInt8](repeating: 1, count: 64)) }))
    }

    @Test(arguments: [
        "", "argon2id", "$", "$2b$", "$2b$15", "$argon2id$v=19$m=256,t=2,p=2$x", "$firebase-scrypt$r=9,m=1",
    ])
    func whatIsNoCostMakesNoDecoy(_ cost: Text) {
        #expect(PasswordCredential.decoy(cost: cost, random: .system) == nil)
    }

    @Test func aCredentialDoesNotPrintItsHash() throws {
        let hash = try PasswordCredential.hash(Secret("x"), profile: .cheap, random: .system)
        var dumped = ""
        dump(hash, to: &dumped)
        #expect("\(hash)" == "<argon2id hash>")
        #expect(!dumped.contains("salt"))
    }

    @Test func profilesHaveBounds() throws {
        for (memory, passes) in [(7, 1), (262_145, 1), (8, 0), (8, 11), (-1, 1), (Int.max, Int.max)] {
            #expect(throws: CryptoError.outOfRange) { try PasswordHashProfile(memoryKiB: memory, passes: passes) }
        }
        #expect(try PasswordHashProfile(memoryKiB: 8, passes: 1) == .cheap)
        _ = try PasswordHashProfile(memoryKiB: 262_144, passes: 10)
    }

    /// crypt_blowfish's own vectors (wrapper.c), then `$2b$` and `$2y$` of the same.
    @Test(arguments: [
        ("U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
        ("U*U*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK"),
        ("", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy"),
        ("U*U", "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
        ("U*U", "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
        // Unused bits of the salt set, as some writers do.
        ("U*U", "$2b$05$CCCCCCCCCCCCCCCCCCCCC/E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
    ])
    func bcryptIsCryptBlowfishs(password: String, stored: String) throws {
        let hash = try credential(stored)
        #expect(hash.kind == .bcrypt)
        #expect(hash.stored.string == stored)
        #expect(try hash.verify(Secret(password)))
        #expect(try !hash.verify(Secret(password + "*")))
        #expect(try !hash.verify(Secret("wrong")))
        #expect(hash.needsRehash(under: .cheap))
    }

    @Test func bcryptSeesNoMoreThan72Bytes() throws {
        let longest = String(repeating: "x", count: 72)
        let hash = try credential("$2b$04$CCCCCCCCCCCCCCCCCCCCC.ug0A3dTXhy5U.dFjx/qguZ8I4CB77BC")
        #expect(try hash.verify(Secret(longest)))
        #expect(try !hash.verify(Secret(longest + "y")))
        #expect(try !hash.verify(Secret(utf8(longest.dropLast().description) + [0])))
        #expect(try !hash.verify(Secret([0x78, 0])))
    }

    @Test func bcryptFormsAreChecked() {
        let good = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
        #expect(error(good) == nil)
        #expect(error(good + "x") == .malformed)
        #expect(error(String(good.dropLast())) == .malformed)
        #expect(error(good.replacing("$05$", with: "$03$")) == .outOfRange)
        #expect(error(good.replacing("$05$", with: "$15$")) == .outOfRange)
        #expect(error(good.replacing("$05$", with: "$31$")) == .outOfRange)
        #expect(error(good.replacing("$05$", with: "$ 5$")) == .malformed)
        #expect(error(good.replacing("$2a$", with: "$2x$")) == .unsupported)
        #expect(error(good.replacing("CC.E5", with: "CC:E5")) == .malformed)
        #expect(error(String(good.dropLast()) + "X") == .malformed)
    }

    @Test func argon2idFormsAreChecked() {
        let salt = "c29tZXNhbHQ"
        let tag = "nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
        func error(
            _ costs: String, version: String = "v=19", salt: String = salt, tag: String = tag, id: String = "argon2id"
        ) -> CryptoError? {
            self.error("$\(id)$\(version)$\(costs)$\(salt)$\(tag)")
        }
        #expect(error("m=256,t=2,p=1") == nil)
        #expect(error("m=262144,t=16,p=16") == nil)
        for costs in [
            "m=262145,t=1,p=1", "m=7,t=1,p=1", "m=256,t=17,p=1", "m=256,t=0,p=1", "m=256,t=1,p=17", "m=31,t=1,p=4",
        ] {
            #expect(error(costs) == .outOfRange, "\(costs)")
        }
        for costs in [
            "m=256,t=2", "m=256,p=1,t=2", "m=256,t=2,p=1,x=1", "m=0256,t=2,p=1", "m=-1,t=2,p=1", "m= 256,t=2,p=1",
            "m=9999999999999999999999,t=2,p=1", "m=,t=2,p=1", "m256,t=2,p=1", "", "m=256,t=2,p=1,",
        ] {
            #expect(error(costs) == .malformed, "\(costs)")
        }
        #expect(error("m=256,t=2,p=1", salt: "c29tZXNhbHQ=") == .malformed)
        #expect(error("m=256,t=2,p=1", salt: "c29tZXNhbHR") == .malformed)
        #expect(error("m=256,t=2,p=1", salt: "c29tZXNh") == .outOfRange)
        #expect(error("m=256,t=2,p=1", salt: String(repeating: "AAAA", count: 22)) == .outOfRange)
        #expect(error("m=256,t=2,p=1", tag: "AAAA") == .outOfRange)
        #expect(error("m=256,t=2,p=1", tag: String(repeating: "AAAA", count: 22)) == .outOfRange)
        #expect(self.error("") == .malformed)
        #expect(self.error("$") == .unsupported)
        #expect(self.error("plain") == .malformed)
        #expect(self.error(String(repeating: "$", count: 2_000)) == .malformed)
    }

    @Test func mutatedFormsAreReadOrRefusedButNeverTrap() throws {
        var random = SeededRandom.printed()
        let alphabet = utf8("$=,.0123456789/+abzAZ-vmtpr") + [0x20, 0x7F, 0xC3, 0xA9]
        let forms = [
            "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$2a$04$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
            "$firebase-scrypt$r=1,m=1$42xEC+ixf3L2lw$Bw$key-1$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqA",
        ]
        var accepted = 0
        for round in 0..<9_000 {
            let bytes = random.mutated(utf8(forms[round % 3]), alphabet: alphabet)
            guard let text = Text(validating: bytes), let hash = try? PasswordCredential(stored: text) else { continue }
            accepted += 1
            #expect(hash.stored == text)
            // A mutation may have raised the cost; a hash that is still cheap is verified, too.
            if text.string.contains("$m=8,t=1,p=1$") || text.string.contains("$r=1,m=1$") {
                _ = try? hash.verify(Secret("password")) { _ in Secret([UInt8](repeating: 1, count: 48)) }
            }
        }
        #expect(accepted > 0)
    }
}

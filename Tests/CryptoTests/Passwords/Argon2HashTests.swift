import Base
import TestSupport
import Testing

@testable import Crypto

/// The forms of argon2 that libsodium does not have.
@Suite struct Argon2HashTests {
    /// The first two are of github.com/P-H-C/phc-winner-argon2, src/test.c. The others were computed in Python from
    /// RFC 9106, by code that gives the vectors of its section 5.
    static let vectors = [
        "$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA",
        "$argon2i$v=16$m=65536,t=2,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ",
        "$argon2d$v=19$m=64,t=3,p=1$c29tZXNhbHQ$Td+flmEPdzlBmNgJjjSsA7TcTztt5/4XCpTtkPQg7CI",
        "$argon2d$v=16$m=64,t=2,p=2$c29tZXNhbHQ$MNuw9TbSSeJgJiNF/O91Qs9uzB1YTCcLuDDeNyxndg4",
        "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8",
        "$argon2i$v=16$m=256,t=2,p=1$c29tZXNhbHQ$/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY",
        "$argon2i$v=16$m=32,t=3,p=4$c29tZXNhbHQ$RtlvoiQY7AA/tauhOXu5jA",
        "$argon2id$v=19$m=64,t=2,p=1,data=YXBw$c29tZXNhbHQ$NGwjtrtFaJA+IRZib6tXjkvtr6U81ml06Qm3Dg1tJsw",
        "$argon2id$v=16$m=64,t=2,p=1$c29tZXNhbHQ$4nDCgqqi/MYvPUrUq8ZfVUrFto43iXYW7ryycatUzoI",
        "$argon2d$v=19$m=128,t=1,p=16,data=\(longestData)$c29tZXNhbHQ$"
            + "ep6rcZ/H9xai4Ficbw3tJsER6KrfXCii3CncJFoLSL6w/x62dhDFgZ4SrUVVnfYx8Mw/7FIDLlEHFLw2Zme/7w",
    ]
    /// 64 times "x".
    private static let longestData = String(repeating: "eHh4", count: 21) + "eA"

    private func error(_ stored: String) -> CryptoError? {
        do throws(CryptoError) {
            _ = try PasswordCredential(stored: Text(stored))
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: vectors)
    func `A published hash fits its password only, and keeps its form`(_ stored: String) throws {
        let credential = try PasswordCredential(stored: Text(stored))
        #expect(credential.stored.string == stored)
        #expect(stored.hasPrefix("$\(credential.kind.rawValue)$"))
        #expect(try credential.verify(Secret("password")))
        for wrong in ["", "passwor", "Password", "password "] {
            #expect(try !credential.verify(Secret(wrong)), "\(wrong)")
        }
        #expect(credential.needsRehash(under: .standard) && credential.needsRehash(under: .cheap))
        let parts = credential.parts
        #expect(parts.scheme == .text(.argon2id))
        #expect(try PasswordCredential(parts.scheme, hash: parts.hash, salt: parts.salt).stored == credential.stored)
    }

    @Test(arguments: vectors)
    func `A decoy costs what the hash does`(_ stored: String) throws {
        let real = try PasswordCredential(stored: Text(stored))
        let decoy = try #require(PasswordCredential.decoy(cost: real.cost, random: .system))
        #expect(decoy.cost == real.cost && decoy.kind == real.kind && decoy.work == real.work)
        #expect(try !decoy.verify(Secret("password")))
    }

    @Test func `A hash without a version is of version 16`() throws {
        let stored = "$argon2i$m=256,t=2,p=1$c29tZXNhbHQ$/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY"
        let credential = try PasswordCredential(stored: Text(stored))
        #expect(try credential.verify(Secret("password")))
        #expect(credential.cost == "$argon2i$v=16$m=256,t=2,p=1")
    }

    @Test func `A hash may come with its salt apart`() throws {
        let scheme = PasswordScheme.argon2(
            .id, version: 19, memoryKiB: 64, passes: 2, lanes: 1, associatedData: [UInt8]("app".utf8))
        let tag = try #require(Base64.standard.decode([UInt8]("NGwjtrtFaJA+IRZib6tXjkvtr6U81ml06Qm3Dg1tJsw=".utf8)))
        try scheme.check()
        let credential = try PasswordCredential(scheme, hash: tag, salt: [UInt8]("somesalt".utf8))
        #expect(credential.stored.string == Self.vectors[7])
        // libsodium computes argon2id of version 19 without associated data.
        let plain = PasswordScheme.argon2(
            .id, version: 19, memoryKiB: 64, passes: 2, lanes: 16, associatedData: [])
        #expect(throws: CryptoError.outOfRange) { try plain.check() }
        #expect(scheme.variants.count == 6 && scheme.variants.first == scheme)
    }

    /// Written out, a long part is no line of text that is read at all: that would be `malformed`.
    @Test func `A part that is too long is not written out`() throws {
        func error(_ hashCount: Int = 32, _ saltCount: Int = 8, _ dataCount: Int = 0) -> CryptoError? {
            let scheme = PasswordScheme.argon2(
                .d, version: 19, memoryKiB: 64, passes: 2, lanes: 1,
                associatedData: [UInt8](repeating: 1, count: dataCount))
            do throws(CryptoError) {
                let hash = [UInt8](repeating: 1, count: hashCount)
                _ = try PasswordCredential(scheme, hash: hash, salt: [UInt8](repeating: 1, count: saltCount))
                return nil
            } catch {
                return error
            }
        }
        #expect(error(64, 64, 64) == nil)
        for (hash, salt, data) in [(65, 64, 64), (64, 65, 64), (64, 64, 65)] {
            #expect(error(hash, salt, data) == .outOfRange)
        }
        for (hash, salt, data) in [(1 << 20, 8, 0), (32, 1 << 20, 0), (32, 8, 1 << 20)] {
            #expect(error(hash, salt, data) == .outOfRange)
        }
    }

    @Test func `Costs and lengths have bounds`() {
        let tail = "$c29tZXNhbHQ$RtlvoiQY7AA/tauhOXu5jA"
        for good in ["m=262144,t=16,p=16", "m=8,t=1,p=1", "m=8,t=1,p=1,data=\(Self.longestData)"] {
            #expect(error("$argon2i$v=19$\(good)\(tail)") == nil, "\(good)")
        }
        for bad in [
            "m=262145,t=1,p=1", "m=7,t=1,p=1", "m=8,t=17,p=1", "m=8,t=0,p=1", "m=8,t=1,p=0", "m=256,t=1,p=17",
            "m=15,t=1,p=2", "m=8,t=1,p=1,data=\(String(repeating: "eHh4", count: 22))",
        ] {
            #expect(error("$argon2i$v=19$\(bad)\(tail)") == .outOfRange, "\(bad)")
            #expect(error("$argon2d$v=16$\(bad)\(tail)") == .outOfRange, "\(bad)")
        }
        #expect(error("$argon2i$v=19$m=8,t=1,p=1$c29tZXNh$RtlvoiQY7AA/tauhOXu5jA") == .outOfRange)
        #expect(error("$argon2i$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAA") == .outOfRange)
        for tagAndSalt in ["\(String(repeating: "AAAA", count: 22))$AAAA", "c29tZXNhbHQ$\(longTag)"] {
            #expect(error("$argon2d$v=19$m=8,t=1,p=1$\(tagAndSalt)") == .outOfRange)
        }
    }

    private var longTag: String { String(repeating: "AAAA", count: 22) }

    @Test(arguments: [
        "$argon2i", "$argon2i$", "$argon2i$v=19", "$argon2i$v=19$m=8,t=1,p=1", "$argon2i$v=19$m=8,t=1,p=1$AA",
        "$argon2i$v=19$m=8,t=1,p=1,data=$c29tZXNhbHQ$RtlvoiQY7AA/tauhOXu5jA",
        "$argon2i$v=19$m=8,t=1,p=1,data=!$c29tZXNhbHQ$RtlvoiQY7AA/tauhOXu5jA",
        "$argon2i$v=19$m=8,t=1,p=1,keyid=AA$c29tZXNhbHQ$RtlvoiQY7AA/tauhOXu5jA",
        "$argon2i$v=$m=8,t=1,p=1$c29tZXNhbHQ$RtlvoiQY7AA/tauhOXu5jA",
        "$argon2i$v=19$v=19$m=8,t=1,p=1$c29tZXNhbHQ$RtlvoiQY7AA/tauhOXu5jA",
        "$argon2i$v=19$m=8,t=1,p=1$c29tZXNhbHQ$RtlvoiQY7AA/tauhOXu5jA$",
        "$argon2id$v=19$m=8,t=1,p=1,data=AA$c29tZXNhbHQ",
    ])
    func `What is no stored form is none`(_ stored: String) {
        #expect(error(stored) == .malformed)
    }

    @Test func `Other versions and variants are not known`() {
        let tail = "m=8,t=1,p=1$c29tZXNhbHQ$RtlvoiQY7AA/tauhOXu5jA"
        #expect(error("$argon2i$v=18$\(tail)") == .unsupported)
        #expect(error("$argon2id$v=20$\(tail)") == .unsupported)
        #expect(error("$argon2ds$v=19$\(tail)") == .unsupported)
    }

    @Test func `Mutated forms are read or refused but never trap`() throws {
        var random = SeededRandom.printed()
        let alphabet = [UInt8]("$=,.0123456789/+abzAZ-vmtpr".utf8) + [0x20, 0x7F, 0xC3, 0xA9]
        var accepted = 0
        for round in 0..<6_000 {
            let form = Self.vectors[2 + round % 8]
            let bytes = random.mutated([UInt8](form.utf8), alphabet: alphabet)
            guard let text = Text(validating: bytes), let hash = try? PasswordCredential(stored: text) else { continue }
            accepted += 1
            #expect(try PasswordCredential(stored: hash.stored).stored == hash.stored)
            if hash.work.memoryByteCount <= 1 << 20, hash.work.time < .milliseconds(5) {
                _ = try? hash.verify(Secret("password"))
            }
        }
        #expect(accepted > 0)
    }
}

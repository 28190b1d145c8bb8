import Base
import TestSupport
import Testing

@testable import Crypto

@Suite struct SigningKeyTests {
    /// PKCS#8 of the RFCs' private keys (RFC 5208; RFC 5915 and RFC 8410 for what is inside).
    private static let ed25519DER = DER.sequence(
        DER.integer([0]), DER.sequence([0x06, 3, 0x2B, 0x65, 0x70]),
        DER.element(0x04, DER.element(0x04, RFCKeys.ed25519Private)))

    private static func p256DER(_ scalar: [UInt8], publicPoint: [UInt8]? = nil) -> [UInt8] {
        let point = publicPoint.map { DER.element(0xA1, DER.bitString($0)) } ?? []
        let algorithm = DER.sequence([
            0x06, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1, 0x06, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7,
        ])
        return DER.sequence(
            DER.integer([0]), algorithm,
            DER.element(0x04, DER.sequence(DER.integer([1]), DER.element(0x04, scalar), point)))
    }

    @Test func edDSASignsAsInRFC8037() throws {
        let key = try SigningKey(der: Secret(Self.ed25519DER))
        #expect(key.algorithm == .edDSA)
        #expect(key.publicKey.jwk == RFCKeys.ed25519)
        #expect(key.sign(RFCKeys.ed25519Message) == RFCKeys.ed25519Signature)
    }

    @Test func es256FindsItsPublicPart() throws {
        let key = try SigningKey(der: Secret(Self.p256DER(RFCKeys.p256Private)))
        #expect(key.publicKey.jwk == RFCKeys.p256)
        let signature = key.sign(RFCKeys.p256Message)
        #expect(signature.count == 64)
        #expect(try VerificationKey(jwk: RFCKeys.p256).verify(signature: signature, over: RFCKeys.p256Message))
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func aNewKeySignsAndSurvivesExport(algorithm: SigningAlgorithm) throws {
        let key = SigningKey.generate(algorithm)
        #expect(key.algorithm == algorithm)
        let read = try SigningKey(der: key.exportDER())
        #expect(read.publicKey == key.publicKey)
        let verifier = try VerificationKey(spki: key.publicKey.exportSPKI())
        for message in [[], utf8("x"), [UInt8](repeating: 7, count: 5_000)] {
            let signature = read.sign(message)
            #expect(signature.count == (algorithm == .rs256 ? 256 : 64))
            #expect(verifier.verify(signature: signature, over: message))
            #expect(key.publicKey.verify(signature: key.sign(message), over: message))
            #expect(!verifier.verify(signature: signature, over: message + [0]))
        }
        #expect(SigningKey.generate(algorithm).publicKey != key.publicKey)
    }

    @Test func anotherKeysSignatureIsRefused() {
        for algorithm in SigningAlgorithm.allCases {
            let signature = SigningKey.generate(algorithm).sign(utf8("message"))
            #expect(!SigningKey.generate(algorithm).publicKey.verify(signature: signature, over: utf8("message")))
        }
    }

    /// The DER form of a signature varies in length: r and s may have leading zeros, and the high bit set.
    @Test func everyES256SignatureHas64Bytes() {
        let key = SigningKey.generate(.es256)
        for number in 0..<1_000 {
            let message = utf8("\(number)")
            let signature = key.sign(message)
            #expect(signature.count == 64)
            #expect(key.publicKey.verify(signature: signature, over: message))
        }
    }

    @Test func manyThreadsUseOneKey() {
        for algorithm in SigningAlgorithm.allCases {
            let key = SigningKey.generate(algorithm)
            let mismatches = Counter()
            let threads = (0..<4).map { thread in
                OSThread(name: "sign") {
                    for round in 0..<50 {
                        let message = utf8("\(thread).\(round)")
                        let signature = key.sign(message)
                        if !key.publicKey.verify(signature: signature, over: message) { mismatches.add() }
                        if key.publicKey.verify(signature: signature, over: message + [0]) { mismatches.add() }
                    }
                }
            }
            for thread in threads { thread.join() }
            #expect(mismatches.value == 0, "\(algorithm)")
        }
    }

    @Test func partsThatDoNotFitAreRefused() throws {
        guard case .p256(let x, let y) = SigningKey.generate(.es256).publicKey.jwk else {
            Issue.record("the key of ES256 is not of P-256")
            return
        }
        let foreign = Self.p256DER(RFCKeys.p256Private, publicPoint: [0x04] + x + y)
        #expect(throws: CryptoError.unsoundKey) { try SigningKey(der: Secret(foreign)) }
    }

    @Test func onlyPKCS8AndNothingBehindItIsRead() throws {
        func error(_ der: [UInt8]) -> CryptoError? {
            do throws(CryptoError) {
                _ = try SigningKey(der: Secret(der))
                return nil
            } catch {
                return error
            }
        }
        #expect(error(Self.ed25519DER) == nil)
        #expect(error(Self.ed25519DER + [0]) == .malformed)
        #expect(error([]) == .malformed)
        #expect(error(RFCKeys.p256.spki) == .malformed)
        #expect(error(utf8("-----BEGIN PRIVATE KEY-----\n")) == .malformed)
        #expect(error([UInt8](repeating: 0x30, count: 20_000)) == .malformed)
        let small = SmallRSAKey.der
        #expect(error(small) == .outOfRange)
    }

    @Test func mutatedKeysAreReadOrRefusedButNeverTrap() {
        var random = SeededRandom.printed()
        let rsa = SigningKey.generate(.rs256).exportDER().bytes
        for (der, count) in [(Self.ed25519DER, 300), (Self.p256DER(RFCKeys.p256Private), 300), (rsa, 60)] {
            for _ in 0..<count {
                guard let key = try? SigningKey(der: Secret(random.mutated(der))) else { continue }
                #expect(key.publicKey.verify(signature: key.sign([1]), over: [1]))
            }
        }
    }
}

/// RSA with 1024 bits, made by `openssl genpkey` for this test and used for nothing.
private enum SmallRSAKey {
    static let der = base64(
        "MIICdgIBADANBgkqhkiG9w0BAQEFAASCAmAwggJcAgEAAoGBAKcaEY8UeCdBAuy+g1jBA40qxfE0dIhxR+4f8K2uvCgJEhQA/qi2"
            + "xKdAidYsi0YaoIpgWcx+bd8G5GaPKNlvkn5CLCe4SlYP062VVRfwNlRwR+rWx4u0qywddyiQU9PFbnwnMTr1Uw2Lb4IwTxD0cEu8"
            + "Shju85iKlhVe1lTsG9a3AgMBAAECgYAy93OFlXO0XVLcDJuZNX20z+gB0sL8XrjWu204PERtXZ7i9Q63PM+sR7YC2iE8p6BxtEOP"
            + "aLxwOvTtBxspfqtKUwv1KpByVCvG4K1jNxhr37Fa/Fio7NT3CdirY7NiGfop73nRq3k92Hw5VyiNs1v3pS1+ywT0A36GDGrkSzZ3"
            + "0QJBANHaoLTUDuDARsXY0tihTbEw6q2WX/gcobQJv/29HfIxb4GKzKg1hcAYJ6CYa3Hex7IcgRRjyvr7bwjS29d5RS8CQQDL2Mek"
            + "3IFYd4A2vsc7Ki117t4ShzSAyajekHiddv1fnPMdS/J95gVH/cVNnh9yb5Byq0GawqI6n1sVIkPKBjT5AkACSUl67tyColWjDiut"
            + "5IP+LDRCU+MTxuwUFA8dapQK8XLvjF2Sb5LXduvnmgGBqhWu4RSe7j9l4JtjEzkF7fJNAkBPkT1UV5HRY0vTkqIXsP3vs55RIx9W"
            + "SeC1hzTdWe3KnWuz+sobZGaZVC/ofRkPRQbgC4LfEqvaMAuQc0B8ofGZAkEAl1AMoclYAz3p5qWoFQwOoZNL4yjTrIDOn0AfuDjs"
            + "EQ0AbBho67/m6N2RE04W77V1rp2qRVem0fFJyBRlqqDk4w==")
}

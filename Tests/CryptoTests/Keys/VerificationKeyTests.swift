import Base
import TestSupport
import Testing

@testable import Crypto

/// The examples of RFC 7515 (appendix A.2, A.3), RFC 7638 (§3.1) and RFC 8037 (appendix A).
enum RFCKeys {
    static let payload =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    static let rsa = PublicJWK.rsa(
        modulus: base64url(
            "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4Ql"
                + "L-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUs"
                + "LA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoud"
                + "F8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"),
        exponent: [1, 0, 1])
    static let rsaMessage = utf8("eyJhbGciOiJSUzI1NiJ9." + payload)
    static let rsaSignature = base64url(
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujG"
            + "bds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K"
            + "0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6"
            + "LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw")

    static let p256 = PublicJWK.p256(
        x: base64url("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
        y: base64url("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"))
    static let p256Private = base64url("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI")
    static let p256Message = utf8("eyJhbGciOiJFUzI1NiJ9." + payload)
    static let p256Signature = base64url(
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q")

    static let ed25519 = PublicJWK.ed25519(x: base64url("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"))
    static let ed25519Private = base64url("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
    static let ed25519Message = utf8("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc")
    static let ed25519Signature = base64url(
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")

    static let all: [(PublicJWK, [UInt8], [UInt8])] = [
        (rsa, rsaMessage, rsaSignature), (p256, p256Message, p256Signature),
        (ed25519, ed25519Message, ed25519Signature),
    ]
}

@Suite struct VerificationKeyTests {
    @Test(arguments: RFCKeys.all)
    func signaturesOfTheRFCsAreValid(jwk: PublicJWK, message: [UInt8], signature: [UInt8]) throws {
        let key = try VerificationKey(jwk: jwk)
        #expect(key.jwk == jwk)
        #expect(key.algorithm == jwk.algorithm)
        for _ in 0..<3 { #expect(key.verify(signature: signature, over: message)) }
    }

    @Test(arguments: RFCKeys.all)
    func aCopyChecksAsItsOriginalDoesAndOutlivesIt(jwk: PublicJWK, message: [UInt8], signature: [UInt8]) throws {
        let copy = try VerificationKey(jwk: jwk).copied()
        #expect(copy.jwk == jwk && copy.algorithm == jwk.algorithm && copy.thumbprint == jwk.thumbprint)
        var wrong = signature
        wrong[0] ^= 1
        for key in [copy, copy.copied()] {
            #expect(key.verify(signature: signature, over: message))
            #expect(!key.verify(signature: wrong, over: message))
            #expect(!key.verify(signature: signature + [0], over: message))
            #expect(key.verify(signature: signature, over: message))
        }
    }

    /// OpenSSL's keys are copied while other threads use them.
    @Test(arguments: RFCKeys.all)
    func aKeyIsCopiedWhileOthersUseIt(jwk: PublicJWK, message: [UInt8], signature: [UInt8]) async throws {
        let key = try VerificationKey(jwk: jwk)
        let results = try await atOnce(8) { _ in
            (0..<50).allSatisfy { _ in
                let copy = key.copied()
                return copy !== key && copy.verify(signature: signature, over: message)
                    && key.verify(signature: signature, over: message)
            }
        }
        for result in results { #expect(try result.get()) }
    }

    @Test(arguments: RFCKeys.all)
    func everyChangedBitIsRefused(jwk: PublicJWK, message: [UInt8], signature: [UInt8]) throws {
        let key = try VerificationKey(jwk: jwk)
        for index in signature.indices {
            var changed = signature
            changed[index] ^= 1 << UInt8(index % 8)
            #expect(!key.verify(signature: changed, over: message))
        }
        for index in message.indices {
            var changed = message
            changed[index] ^= 1
            #expect(!key.verify(signature: signature, over: changed))
        }
        #expect(!key.verify(signature: signature, over: []))
        // A refusal leaves nothing behind in the contexts that are reused.
        #expect(key.verify(signature: signature, over: message))
    }

    @Test(arguments: RFCKeys.all)
    func onlyOneLengthIsASignature(jwk: PublicJWK, message: [UInt8], signature: [UInt8]) throws {
        let key = try VerificationKey(jwk: jwk)
        for count in 0..<signature.count { #expect(!key.verify(signature: Array(signature[..<count]), over: message)) }
        #expect(!key.verify(signature: signature + [0], over: message))
        #expect(!key.verify(signature: [0] + signature, over: message))
        #expect(!key.verify(signature: [UInt8](repeating: 0, count: 10_000), over: message))
    }

    @Test func aDERSignatureIsNoES256() throws {
        let key = try VerificationKey(jwk: RFCKeys.p256)
        let der = RFCKeys.p256Signature.withUnsafeBytes { ECDSASignature.der($0) }
        #expect(!key.verify(signature: der, over: RFCKeys.p256Message))
        #expect(ECDSASignature.raw(der[...]) == RFCKeys.p256Signature)
    }

    @Test func es256RefusesNumbersOutOfRange() throws {
        let order = hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
        var orderPlusOne = order
        orderPlusOne[31] += 1
        let zero = [UInt8](repeating: 0, count: 32)
        let one = [UInt8](repeating: 0, count: 31) + [1]
        let most = [UInt8](repeating: 0xFF, count: 32)
        let r = Array(RFCKeys.p256Signature[..<32])
        let s = Array(RFCKeys.p256Signature[32...])
        let key = try VerificationKey(jwk: RFCKeys.p256)
        let edges = [zero, one, order, orderPlusOne, most]
        for edge in edges {
            #expect(!key.verify(signature: edge + s, over: RFCKeys.p256Message))
            #expect(!key.verify(signature: r + edge, over: RFCKeys.p256Message))
            for other in edges { #expect(!key.verify(signature: edge + other, over: RFCKeys.p256Message)) }
        }
        // r + n and s + n do not fit into 32 bytes here; n - s is as valid as s (SEC 1 §4.1.4 has no "low s" rule).
        #expect(key.verify(signature: r + subtract(s, from: order), over: RFCKeys.p256Message))
    }

    private func subtract(_ small: [UInt8], from large: [UInt8]) -> [UInt8] {
        var result = large
        var borrow = 0
        for index in large.indices.reversed() {
            let difference = Int(large[index]) - Int(small[index]) - borrow
            result[index] = UInt8(truncatingIfNeeded: difference)
            borrow = difference < 0 ? 1 : 0
        }
        return result
    }

    @Test func edDSARefusesAScalarBeyondTheOrder() throws {
        // RFC 8032 §5.1.7: s + L is another spelling of s, and not a valid signature.
        let order = hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
        var signature = RFCKeys.ed25519Signature
        var carry = 0
        for index in 0..<32 {
            let sum = Int(signature[32 + index]) + Int(order[index]) + carry
            signature[32 + index] = UInt8(truncatingIfNeeded: sum)
            carry = sum >> 8
        }
        #expect(carry == 0)
        #expect(try !VerificationKey(jwk: RFCKeys.ed25519).verify(signature: signature, over: RFCKeys.ed25519Message))
    }

    @Test func thumbprintsAreThoseOfTheRFCs() throws {
        let rsa = PublicJWK.rsa(
            modulus: base64url(
                "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWK"
                    + "RXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMic"
                    + "AtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3"
                    + "XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"),
            exponent: [1, 0, 1])
        #expect(rsa.thumbprint == base64url("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"))
        let ed25519 = try VerificationKey(jwk: RFCKeys.ed25519)
        #expect(ed25519.thumbprint == base64url("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"))
        #expect(ed25519.keyID == Text(unchecked: Base64.url.encode(ed25519.thumbprint[..<16])))
    }

    @Test(arguments: RFCKeys.all)
    func membersReadBack(jwk: PublicJWK, message: [UInt8], signature: [UInt8]) throws {
        let members = jwk.members
        #expect(members.map(\.name.description) == members.map(\.name.description).sorted())
        let read = try PublicJWK { name in members.first { Text(stringLiteral: $0.name) == name }?.value }
        #expect(read == jwk)
        let key = try VerificationKey(jwk: read)
        #expect(try VerificationKey(spki: key.exportSPKI()) == key)
    }

    @Test func membersAreChecked() {
        func error(_ members: [Text: Text]) -> CryptoError? {
            do throws(CryptoError) {
                _ = try PublicJWK { members[$0] }
                return nil
            } catch {
                return error
            }
        }
        #expect(error([:]) == .malformed)
        #expect(error(["kty": "oct", "k": "AAAA"]) == .unsupported)
        #expect(error(["kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"]) == .unsupported)
        #expect(error(["kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"]) == .unsupported)
        #expect(error(["kty": "OKP", "crv": "X25519", "x": "AA"]) == .unsupported)
        #expect(error(["kty": "EC", "x": "AA", "y": "AA"]) == .unsupported)
        #expect(error(["kty": "RSA", "n": "AQAB"]) == .malformed)
        #expect(error(["kty": "RSA", "n": "AQAB=", "e": "AQAB"]) == .malformed)
        #expect(error(["kty": "RSA", "n": "AQ+B", "e": "AQAB"]) == .malformed)
        #expect(error(["kty": "RSA", "n": Text(String(repeating: "AAAA", count: 513)), "e": "AQAB"]) == .malformed)
    }
}

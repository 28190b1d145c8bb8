import Base
import Crypto
import Testing

/// Vectors: github.com/firebase/scrypt (README and tests), firebase-admin-node's integration test; all with separator
/// `Bw==`, 8 rounds, memory cost 14.
@Suite struct FirebaseScryptTests {
    private static let key1 =
        "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=="

    private static let vectors = [
        (
            key1, "42xEC+ixf3L2lw==", "user1password",
            "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="
        ),
        (
            key1, "42xEC+ixf3L2lw==", "hunter2",
            "70k8Vg5B3/OrvJOiqusnasv0dLcBHoDAqJrJr7TRLBfMw4MitWx51YXJYFdGiyMbMeKtWtLf5HiBDcN0SUOm4A=="
        ),
        (
            "NkZlKPkYEFfnbh1nYTfLsbqQnQ6jyRV4itK7iUD+hjO96tsAYhBG40BVS3AuJyiwHinqc5RR3oA+lppOXPNRmw==",
            "nwdW6iryfC10oQ==", "testing123",
            "D4/67JzbolWXC6BuTdt0fRa6owx4CSEinCykFl+W02E8lpbFopre+BkWwYV9iFGhqwYiET+Hm9jT7s7LWz88bA=="
        ),
        (
            "U01Ba7WbeBZyY/HjvbEp+N9KkB2h/oF7uSSbBSCj803usz1GV7YIhM+LlusLiU+t3qbz8hh5PLOUSekExEY04w==",
            "GGc/eCzFj6DM0g==", "two space password",
            "gB192J7wht579b0T7A8Hb7XCG3ADuDyrHKMu+QexJzeTTc+qCz+pTp0sgL4gbWWG8wZobLttkGPGkC3Tal7L4g=="
        ),
        (
            key1, "TmFDbA==", "password",
            "V358E8LdWJXAO7muq0CufVpEOXaj8aFiC7T/rcaGieN04q/ZPJ08WhJEHGjj9lz/2TT+/86N5VjVoc5DdBhBiw=="
        ),
    ]

    private func credential(
        hash: [UInt8] = [UInt8](repeating: 1, count: 64), salt: [UInt8] = [1], separator: [UInt8] = [7],
        rounds: Int = 8, memoryCost: Int = 14, keyID: Text = "key-1"
    ) throws(CryptoError) -> PasswordCredential {
        try PasswordCredential(
            .firebaseScrypt(
                saltSeparator: separator, rounds: rounds, memoryCost: memoryCost, signerKeyID: keyID),
            hash: hash, salt: salt)
    }

    @Test(arguments: vectors)
    func hashesAreFirebases(key: String, salt: String, password: String, hash: String) throws {
        let imported = try credential(hash: base64(hash), salt: base64(salt))
        let stored = try PasswordCredential(stored: imported.stored)
        #expect(stored.stored == imported.stored)
        #expect(stored.kind == .firebaseScrypt)
        #expect(stored.signerKeyID == "key-1")
        #expect(stored.needsRehash(under: .standard))
        #expect(try stored.verify(Secret(password)) { $0 == "key-1" ? Secret(base64(key)) : nil })
        #expect(try !stored.verify(Secret(password + "x")) { _ in Secret(base64(key)) })
    }

    @Test func theStoredFormNamesTheKeyAndDoesNotHoldIt() throws {
        let hash = try credential(hash: [UInt8](repeating: 0, count: 16), salt: [1, 2], keyID: "proj_1")
        #expect(hash.stored == "$firebase-scrypt$r=8,m=14$AQI$Bw$proj_1$AAAAAAAAAAAAAAAAAAAAAA")
        let plain = try credential(hash: [UInt8](repeating: 0, count: 16), separator: [])
        #expect(try PasswordCredential(stored: plain.stored).stored == plain.stored)
    }

    @Test func withoutTheSignerKeyNothingIsKnown() throws {
        let hash = try credential(rounds: 1, memoryCost: 1)
        #expect(throws: CryptoError.unknownKey(id: "key-1")) { try hash.verify(Secret("x")) }
        #expect(try !hash.verify(Secret("x")) { _ in Secret("short") })
    }

    @Test func costsLengthsAndIdsHaveBounds() {
        #expect(throws: Never.self) {
            try credential(salt: [UInt8](repeating: 1, count: 128), rounds: 1, memoryCost: 1)
        }
        for (rounds, memoryCost) in [(0, 14), (9, 14), (8, 0), (8, 15), (-1, 1), (Int.max, Int.min)] {
            #expect(throws: CryptoError.outOfRange) { try credential(rounds: rounds, memoryCost: memoryCost) }
        }
        #expect(throws: CryptoError.outOfRange) { try credential(hash: [UInt8](repeating: 1, count: 15)) }
        #expect(throws: CryptoError.outOfRange) { try credential(hash: [UInt8](repeating: 1, count: 129)) }
        #expect(throws: CryptoError.outOfRange) { try credential(salt: []) }
        #expect(throws: CryptoError.outOfRange) { try credential(separator: [UInt8](repeating: 1, count: 33)) }
        for id: Text in ["", "a$b", "a b", "é"] {
            #expect(throws: CryptoError.malformed) { try credential(keyID: id) }
        }
    }
}

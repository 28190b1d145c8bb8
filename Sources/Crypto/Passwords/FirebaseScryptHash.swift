import Base
import COpenSSL

/// Firebase's scrypt (github.com/firebase/scrypt): the hash is the project's signer key, encrypted with AES-256-CTR
/// under the key that scrypt derives from the password.
///
/// The signer key is a secret of the source project: the record names it, and the caller passes it.
struct FirebaseScryptHash: Sendable {
    let rounds: Int
    let memoryCost: Int
    let salt: [UInt8]
    let saltSeparator: [UInt8]
    let keyID: Text
    let hash: [UInt8]

    static let id = "firebase-scrypt"

    init(
        hash: [UInt8], salt: [UInt8], saltSeparator: [UInt8], rounds: Int, memoryCost: Int, signerKeyID: Text
    ) throws(CryptoError) {
        guard (1...8).contains(rounds), (1...14).contains(memoryCost), (16...128).contains(hash.count),
            (1...128).contains(salt.count), saltSeparator.count <= 32
        else { throw .outOfRange }
        self.rounds = rounds
        self.memoryCost = memoryCost
        self.salt = salt
        self.saltSeparator = saltSeparator
        self.keyID = try PHCString.keyID(signerKeyID)
        self.hash = hash
    }

    /// `$firebase-scrypt$r=8,m=14$salt$separator$signer-key-id$hash`
    init(_ string: PHCString) throws(CryptoError) {
        guard string.fields.count == 6, let costs = PHCString.parameters(string.fields[1], named: ["r", "m"]),
            let salt = PHCString.decode(string.fields[2]), let separator = PHCString.decode(string.fields[3]),
            let hash = PHCString.decode(string.fields[5])
        else { throw .malformed }
        try self.init(
            hash: hash, salt: salt, saltSeparator: separator, rounds: costs[0], memoryCost: costs[1],
            signerKeyID: Text(unchecked: [UInt8](string.fields[4])))
    }

    var cost: String { "$\(Self.id)$r=\(rounds),m=\(memoryCost)" }
    var stored: String {
        "\(cost)$\(PHCString.encode(salt))$\(PHCString.encode(saltSeparator))$\(keyID)$\(PHCString.encode(hash))"
    }

    /// Throws `outOfMemory`: scrypt takes 128 · rounds · 2^memoryCost bytes, 16 MiB at the most.
    func verify(_ password: Secret, signerKey: Secret) throws(CryptoError) -> Bool {
        OpenSSL.start
        return try withWipedScratch(byteCount: 64) { (derived) throws(CryptoError) in
            let saltAndSeparator = salt + saltSeparator
            let isDerived = password.withCharacters { characters, count in
                EVP_PBE_scrypt(
                    characters, count, saltAndSeparator, saltAndSeparator.count, 1 << UInt64(memoryCost),
                    UInt64(rounds), 1, 64 << 20, derived.octets, derived.count) == 1
            }
            // All parameters were checked, so only the allocation can fail.
            guard isDerived else {
                ERR_clear_error()
                throw .outOfMemory
            }
            // A key of another length is no reason to answer earlier: the time would tell that the user exists.
            return constantTimeEqual(encrypt(signerKey, under: UnsafeRawBufferPointer(derived)), hash)
        }
    }

    /// AES-256-CTR from a counter of zero; the key is the first 32 bytes.
    private func encrypt(_ plain: Secret, under key: UnsafeRawBufferPointer) -> [UInt8] {
        guard let cipher = EVP_CIPHER_CTX_new() else { OpenSSL.fail("EVP_CIPHER_CTX_new") }
        defer { EVP_CIPHER_CTX_free(cipher) }
        let counter = [UInt8](repeating: 0, count: 16)
        var output = [UInt8](repeating: 0, count: plain.byteCount)
        var count: Int32 = 0
        let isEncrypted = plain.withBytes { plain in
            EVP_EncryptInit_ex2(cipher, OpenSSL.aes256CTR, key.octets, counter, nil) == 1
                && EVP_EncryptUpdate(cipher, &output, &count, plain.octets, Int32(plain.count)) == 1
        }
        guard isEncrypted, count == output.count else { OpenSSL.fail("AES-256-CTR") }
        return output
    }
}

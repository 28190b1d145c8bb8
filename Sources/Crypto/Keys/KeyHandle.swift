// One EVP_PKEY. Everything about OpenSSL's key types is in this folder.

import COpenSSL
import Glibc

// Unchecked: the key is never changed after init. openssl-threads(7): "two threads can calculate a signature using two
// different EVP_PKEY_CTX objects"; unsafe is only to "mutate an object, such as setting elements of a private or public
// key, while another thread is using that object". OpenSSL itself locks what it caches inside of a key.
final class KeyHandle: @unchecked Sendable {
    let pointer: OpaquePointer

    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { EVP_PKEY_free(pointer) }

    /// Throws `malformed`. `KeySoundness` decides whether the key may be used.
    convenience init(spki: [UInt8]) throws(CryptoError) {
        OpenSSL.start
        let pointer: OpaquePointer? = spki.withUnsafeBytes { bytes in
            var cursor = bytes.octets
            guard bytes.count <= 4096 else { return nil }
            guard let pointer = d2i_PUBKEY_ex(nil, &cursor, bytes.count, nil, nil) else { return nil }
            if cursor == bytes.octets! + bytes.count { return pointer }
            EVP_PKEY_free(pointer)
            return nil
        }
        ERR_clear_error()
        guard let pointer else { throw .malformed }
        self.init(owning: pointer)
    }

    /// Nil if OpenSSL cannot copy the key. Not every provider can (provider-keymgmt(7), OSSL_FUNC_keymgmt_dup), and the
    /// machine's openssl.cnf chooses the provider.
    func copied() -> KeyHandle? {
        guard let copy = EVP_PKEY_dup(pointer) else {
            ERR_clear_error()
            return nil
        }
        return KeyHandle(owning: copy)
    }

    /// The algorithm of this key; `unsupported` for other kinds and curves. It says nothing about the key's soundness.
    func algorithm() throws(CryptoError) -> SigningAlgorithm {
        if EVP_PKEY_is_a(pointer, "RSA") == 1 { return .rs256 }
        if EVP_PKEY_is_a(pointer, "ED25519") == 1 { return .edDSA }
        guard EVP_PKEY_is_a(pointer, "EC") == 1 else { throw .unsupported }
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        let hasName = EVP_PKEY_get_group_name(pointer, &name, name.count, &count) == 1
        ERR_clear_error()
        guard hasName, strncmp(name, "prime256v1", name.count) == 0 else { throw .unsupported }
        return .es256
    }

    /// A component as an unsigned big-endian integer without leading zeros. Throws `unsoundKey` if the key has none.
    func integer(_ name: String) throws(CryptoError) -> [UInt8] {
        var number: OpaquePointer?
        guard EVP_PKEY_get_bn_param(pointer, name, &number) == 1 else {
            ERR_clear_error()
            throw .unsoundKey
        }
        defer { BN_free(number) }
        var bytes = [UInt8](repeating: 0, count: Int(BN_num_bits(number) + 7) / 8)
        BN_bn2bin(number, &bytes)
        return bytes
    }

    /// The public part; the key must be of one of the three algorithms.
    func jwk(_ algorithm: SigningAlgorithm) throws(CryptoError) -> PublicJWK {
        func coordinate(_ name: String) throws(CryptoError) -> [UInt8] {
            let digits = try integer(name)
            guard digits.count <= 32 else { throw .unsoundKey }
            return [UInt8](repeating: 0, count: 32 - digits.count) + digits
        }
        switch algorithm {
        case .rs256:
            return .rsa(modulus: try integer(OSSL_PKEY_PARAM_RSA_N), exponent: try integer(OSSL_PKEY_PARAM_RSA_E))
        case .es256:
            return .p256(x: try coordinate(OSSL_PKEY_PARAM_EC_PUB_X), y: try coordinate(OSSL_PKEY_PARAM_EC_PUB_Y))
        case .edDSA:
            var x = [UInt8](repeating: 0, count: 32)
            var count = x.count
            guard EVP_PKEY_get_raw_public_key(pointer, &x, &count) == 1, count == 32 else {
                ERR_clear_error()
                throw .unsoundKey
            }
            return .ed25519(x: x)
        }
    }
}

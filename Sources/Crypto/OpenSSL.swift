// The OpenSSL objects that Postern keeps: algorithms fetched once per process, one digest context per thread.
// Fetching per call costs more than hashing does, and takes library-wide locks (openssl/openssl#17064, #20286).

import Base
import COpenSSL

enum OpenSSL {
    /// Must come before the first call of OpenSSL. Prevents its clean-up in atexit(3), which would free its state while
    /// other threads still run (OPENSSL_init_crypto(3), OPENSSL_INIT_NO_ATEXIT).
    static let start: Void = {
        guard OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1 else { fail("OPENSSL_init_crypto") }
    }()

    // Shared by all threads: a fetched algorithm is never changed, only counted, and the count is atomic
    // (openssl-threads(7): "Objects are thread-safe as long as the API's being invoked don't modify the object").
    nonisolated(unsafe) static let sha256 = fetchDigest("SHA2-256")

    // As above.
    nonisolated(unsafe) static let sha1 = fetchDigest("SHA1")

    // As above.
    nonisolated(unsafe) static let aes256GCM = fetchCipher("AES-256-GCM")

    // As above.
    nonisolated(unsafe) static let aes256CTR = fetchCipher("AES-256-CTR")

    /// This thread's EVP_MD_CTX, made on first use and freed when the thread ends. Use it from start to end without
    /// calling anything else that takes it.
    static var threadDigestContext: OpaquePointer {
        if let context = keptContext.value { return OpaquePointer(context) }
        guard let context = EVP_MD_CTX_new() else { fail("EVP_MD_CTX_new") }
        keptContext.value = UnsafeMutableRawPointer(context)
        return context
    }

    /// Writes the digest of `first` followed by `second` to `output`, which may be one of them and is large enough.
    /// Returns false if there is no memory.
    @inline(__always)
    static func digest(
        _ algorithm: OpaquePointer, of first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let context = threadDigestContext
        return EVP_DigestInit_ex(context, algorithm, nil) == 1
            && EVP_DigestUpdate(context, first.baseAddress, first.count) == 1
            && EVP_DigestUpdate(context, second.baseAddress, second.count) == 1
            && EVP_DigestFinal_ex(context, output.octets, nil) == 1
    }

    /// Ends the process with OpenSSL's reason, for a failure that can only be our own mistake or a lack of memory.
    static func fail(_ call: StaticString) -> Never {
        let code = ERR_peek_error()
        let reason = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
        preconditionFailure("\(call): \(reason)")
    }

    private static let keptContext = ThreadPointer { context in
        if let context { EVP_MD_CTX_free(OpaquePointer(context)) }
    }

    private static func fetchDigest(_ name: String) -> OpaquePointer {
        start
        guard let digest = EVP_MD_fetch(nil, name, nil) else { fail("EVP_MD_fetch") }
        return digest
    }

    private static func fetchCipher(_ name: String) -> OpaquePointer {
        start
        guard let cipher = EVP_CIPHER_fetch(nil, name, nil) else { fail("EVP_CIPHER_fetch") }
        return cipher
    }
}

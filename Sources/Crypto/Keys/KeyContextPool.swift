import COpenSSL
import Synchronization

/// Contexts of one key and one operation, ready to use and used again: with a new context each time, ES256 signs 14 %
/// slower.
///
/// EVP_PKEY_CTX_new(3): "Contexts MUST NOT be shared between threads": a caller has a context to itself while it works.
/// There are never more contexts than callers at the same time.
final class KeyContextPool: Sendable {
    enum Operation {
        case sign, verify
    }

    // Unchecked: a context is in the pool or with exactly one caller, never both.
    private struct Context: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private let key: KeyHandle
    private let operation: Operation
    private let idle = Mutex<[Context]>([])

    init(_ key: KeyHandle, _ operation: Operation) {
        self.key = key
        self.operation = operation
    }

    deinit {
        idle.withLock { contexts in
            for context in contexts { EVP_PKEY_CTX_free(context.pointer) }
        }
    }

    /// EVP_PKEY_sign(3) and EVP_PKEY_verify(3) "can be called more than once on the same context".
    func withContext<Result>(_ body: (OpaquePointer) -> Result) -> Result {
        let context = idle.withLock { $0.popLast() } ?? make()
        defer { idle.withLock { $0.append(context) } }
        return body(context.pointer)
    }

    private func make() -> Context {
        guard let context = EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil) else {
            OpenSSL.fail("EVP_PKEY_CTX_new_from_pkey")
        }
        let isInitialized = operation == .sign ? EVP_PKEY_sign_init(context) : EVP_PKEY_verify_init(context)
        guard isInitialized == 1, EVP_PKEY_CTX_set_signature_md(context, OpenSSL.sha256) == 1 else {
            OpenSSL.fail("EVP_PKEY_sign_init")
        }
        if EVP_PKEY_is_a(key.pointer, "RSA") == 1 {
            guard EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1 else {
                OpenSSL.fail("EVP_PKEY_CTX_set_rsa_padding")
            }
        }
        return Context(pointer: context)
    }
}

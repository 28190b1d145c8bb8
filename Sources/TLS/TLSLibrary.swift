import CTLS

/// OpenSSL as a whole.
enum TLSLibrary {
    /// Called before any other function of OpenSSL. Prevents its clean-up in atexit(3), which would free state that
    /// running threads still use (OPENSSL_init_crypto(3), OPENSSL_INIT_NO_ATEXIT). Calling it again does nothing.
    static let start: Void = { _ = OPENSSL_init_ssl(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) }()
}

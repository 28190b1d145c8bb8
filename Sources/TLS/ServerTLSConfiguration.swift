import CTLS

/// The settings of a server's TLS.
public struct ServerTLSConfiguration: Sendable {
    public var credential: TLSCredential
    public var minimumVersion = TLSVersion.tls13
    /// The protocols inside TLS, by ALPN. A client that names only other protocols is refused; a client that names none
    /// is not.
    public var protocols: [ApplicationProtocol] = [.native, .http2]
    /// The authorities whose certificates clients may show. Nil: clients are not asked for a certificate.
    public var clients: ClientTrust?
    /// The most bytes of certificates that a client may show (`Limits.tlsCertificateListMax`).
    public var certificateListByteCountMax: Int

    public init(credential: TLSCredential, certificateListByteCountMax: Int) {
        self.credential = credential
        self.certificateListByteCountMax = certificateListByteCountMax
    }
}

extension TLSContext {
    /// A server's context.
    public convenience init(_ configuration: ServerTLSConfiguration) throws(TLSError) {
        try self.init(
            .server, minimumVersion: configuration.minimumVersion, credential: configuration.credential,
            certificateListByteCountMax: configuration.certificateListByteCountMax)
        if let clients = configuration.clients { try ask(clients) }
        let protocols = configuration.protocols
        let choose =
            protocols.contains(.http1) ? chooseHTTP1 : protocols.contains(.http2) ? chooseAnyCall : chooseNativeCall
        SSL_CTX_set_alpn_select_cb(pointer, choose, nil)
    }
}

/// SSL_CTX_alpn_select_cb_func of OpenSSL.
private typealias ALPNCallback =
    @convention(c) (
        OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?,
        UnsafePointer<UInt8>?, UInt32, UnsafeMutableRawPointer?
    ) -> Int32

// The server's lists are one of these three, so that the callback needs no memory of its own.

private let chooseHTTP1: ALPNCallback = { _, out, outCount, offered, offeredCount, _ in
    selectProtocol([.http1], out, outCount, offered, offeredCount)
}

private let chooseAnyCall: ALPNCallback = { _, out, outCount, offered, offeredCount, _ in
    selectProtocol([.native, .http2], out, outCount, offered, offeredCount)
}

private let chooseNativeCall: ALPNCallback = { _, out, outCount, offered, offeredCount, _ in
    selectProtocol([.native], out, outCount, offered, offeredCount)
}

/// Chooses the first protocol of the client's list that is ours (RFC 7301 §3.2). Each entry of the list is a byte with
/// the length, and the name; OpenSSL has checked that the lengths fit.
private func selectProtocol(
    _ ours: [ApplicationProtocol], _ out: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ outCount: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ offeredCount: UInt32
) -> Int32 {
    let list = UnsafeBufferPointer(start: offered, count: Int(offeredCount))
    var index = 0
    while index < list.count {
        let end = min(list.count, index + 1 + Int(list[index]))
        let name = list[(index + 1)..<end]
        if ours.contains(where: { name.elementsEqual($0.rawValue.utf8) }) {
            out?.pointee = list.baseAddress.map { $0 + index + 1 }
            outCount?.pointee = UInt8(truncatingIfNeeded: name.count)
            return SSL_TLSEXT_ERR_OK
        }
        index = end
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL
}

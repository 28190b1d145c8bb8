import CTLS

/// What a server's TLS is made of.
public struct ServerTLSConfiguration: Sendable {
    public var credential: TLSCredential
    public var minimumVersion = TLSVersion.tls13
    /// What is spoken inside, by ALPN. A client that names none of these is refused; one that names nothing is not.
    public var protocols: [ApplicationProtocol] = [.native, .http2]
    /// Whose certificates clients may show. Nil: they are not asked for any.
    public var clients: ClientTrust?
    /// The bytes of certificates that a client may show (`Limits.tlsCertificateListMax`).
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
        // The server's lists are one of these two, so that the callback needs no memory of its own.
        if configuration.protocols.contains(.http2) {
            SSL_CTX_set_alpn_select_cb(
                pointer,
                { _, out, outCount, offered, offeredCount, _ in
                    selectProtocol([.native, .http2], out, outCount, offered, offeredCount)
                }, nil)
        } else {
            SSL_CTX_set_alpn_select_cb(
                pointer,
                { _, out, outCount, offered, offeredCount, _ in
                    selectProtocol([.native], out, outCount, offered, offeredCount)
                }, nil)
        }
    }
}

/// Chooses the first protocol of the client's list that is ours (RFC 7301 §3.2). Each of the list is a byte with its
/// length and the name; OpenSSL has checked that the lengths fit.
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

public import Base
public import Crypto

/// The private key with which client secrets for Apple are made, as Apple gives it out.
public enum ApplePrivateKey {
    /// Apple's keys have 138 bytes of DER. A long key of another kind may be made so that OpenSSL takes a second to
    /// read it, and keys are read where others wait: in the store's transactions. In this many bytes, no kind of key
    /// takes more than some milliseconds.
    static let derByteCountMax = 256

    /// A PEM of PKCS#8 (RFC 7468 §10) with a P-256 key; white space around and in it does not matter.
    public static func read(_ pem: Secret) -> SigningKey? {
        let text = pem.withBytes { bytes in bytes.filter { ![0x20, 0x09, 0x0D, 0x0A].contains($0) } }
        let (begin, end) = (Array("-----BEGINPRIVATEKEY-----".utf8), Array("-----ENDPRIVATEKEY-----".utf8))
        guard text.count > begin.count + end.count, text.starts(with: begin), text.suffix(end.count).elementsEqual(end),
            let der = Base64.standard.decode(text[begin.count..<(text.count - end.count)]),
            der.count <= derByteCountMax,
            let key = try? SigningKey(der: Secret(der)), key.algorithm == .es256
        else { return nil }
        return key
    }
}

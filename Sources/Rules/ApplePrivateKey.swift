public import Base
public import Crypto

/// The private key with which client secrets for Apple are made, as Apple gives it out.
public enum ApplePrivateKey {
    /// A PEM of PKCS#8 (RFC 7468 §10) with a P-256 key; white space around and in it does not matter.
    public static func read(_ pem: Secret) -> SigningKey? {
        let text = pem.withBytes { bytes in bytes.filter { ![0x20, 0x09, 0x0D, 0x0A].contains($0) } }
        let (begin, end) = (Array("-----BEGINPRIVATEKEY-----".utf8), Array("-----ENDPRIVATEKEY-----".utf8))
        guard text.count > begin.count + end.count, text.starts(with: begin), text.suffix(end.count).elementsEqual(end),
            let der = Base64.standard.decode(text[begin.count..<(text.count - end.count)]),
            let key = try? SigningKey(der: Secret(der)), key.algorithm == .es256
        else { return nil }
        return key
    }
}

public import Base
public import Crypto

/// The private key with which client secrets for Apple are made, as Apple gives it out.
public enum ApplePrivateKey {
    /// Apple's keys have 138 bytes of DER. A key of another kind may be made so that OpenSSL takes a second to read it,
    /// and keys are read on event loops. So OpenSSL gets no longer key, and none of another kind.
    static let derByteCountMax = 256

    /// What follows the first header of a P-256 key in PKCS#8 (RFC 5208 §5, RFC 5480 §2.1.1): the version, and
    /// id-ecPublicKey with prime256v1.
    private static let beginning: [UInt8] = [
        0x02, 1, 0, 0x30, 0x13, 0x06, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1, 0x06, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3,
        1, 7,
    ]

    /// A PEM of PKCS#8 (RFC 7468 §10) with a P-256 key; white space around and in it does not matter.
    public static func read(_ pem: Secret) -> SigningKey? {
        let text = pem.withBytes { bytes in bytes.filter { ![0x20, 0x09, 0x0D, 0x0A].contains($0) } }
        let (begin, end) = (Array("-----BEGINPRIVATEKEY-----".utf8), Array("-----ENDPRIVATEKEY-----".utf8))
        guard text.count > begin.count + end.count, text.starts(with: begin), text.suffix(end.count).elementsEqual(end),
            let der = Base64.standard.decode(text[begin.count..<(text.count - end.count)]),
            der.count <= derByteCountMax, isOfP256(der),
            let key = try? SigningKey(der: Secret(der)), key.algorithm == .es256
        else { return nil }
        return key
    }

    /// Whether PKCS#8 of this beginning can only be a P-256 key.
    static func isOfP256(_ der: [UInt8]) -> Bool {
        guard let tag = der.first, tag == 0x30, let length = der.dropFirst().first else { return false }
        let furtherCount = length < 0x80 ? 0 : Int(length & 0x7F)
        return der.dropFirst(2 + furtherCount).starts(with: beginning)
    }
}

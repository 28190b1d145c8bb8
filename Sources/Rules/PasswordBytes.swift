public import Base
public import Crypto

/// The bytes of a typed password that are hashed.
///
/// Our own hashes are made of the NFC form (NIST SP 800-63B §3.1.1.2), because keyboards differ in how they compose an
/// "é". Other systems hashed the typed bytes, so their hashes are tried with those first.
///
/// Swift's normaliser takes quadratic time over a run of combining marks: 1 MB of them holds a thread for minutes,
/// 4,096 bytes for 2 ms. So nothing longer than `byteCountMax` is normalised in any call.
public enum PasswordBytes {
    /// The length of the longest password that any call accepts.
    public static let byteCountMax = Limits().passwordMax

    public static func canonical(_ password: Secret) -> Secret {
        password.withBytes { bytes in
            if bytes.count > byteCountMax || bytes.allSatisfy({ $0 < 0x80 }) { return password }
            return Secret(NFC.composed(String(decoding: bytes, as: UTF8.self)))
        }
    }

    public static func candidates(_ password: Secret, for kind: PasswordCredential.Kind) -> [Secret] {
        let composed = canonical(password)
        if composed == password { return [password] }
        return kind == .argon2id ? [composed, password] : [password, composed]
    }
}

import Base
import Messages

/// The secret of an authenticator app that is about to be enrolled, made by `TOTPMultiFactorGenerator.generateSecret`.
///
/// The server tells the secret once. It is wiped with the last copy and never printed.
///
/// ```swift
/// let secret = try await TOTPMultiFactorGenerator.generateSecret(with: user.multiFactor.session())
/// print("Type this into your app:", secret.sharedSecretKey())
/// print("Or scan it:", secret.qrCodeURL)
/// ```
public struct TOTPSecret: Sendable {
    private let key: Secret
    private let uri: Secret
    /// The digits of a code: 6.
    public let codeLength: Int
    /// The seconds for which a code is shown: 30.
    public let codeIntervalSeconds: Int
    /// The algorithm of the codes: "SHA1".
    public let hashingAlgorithm: String
    let sessionInfo: Secret

    init(_ response: AccountsStartMfaEnrollmentResponse) throws(AuthError) {
        guard let totp = response.totp else { throw .malformedAnswer("secret") }
        self.key = totp.sharedSecret
        self.uri = totp.uri
        self.codeLength = Int(totp.codeLength)
        self.codeIntervalSeconds = Int(totp.periodSeconds)
        self.hashingAlgorithm = totp.algorithm.string
        self.sessionInfo = response.sessionInfo
    }

    /// Returns the secret in base32, to be typed into an authenticator app. Whoever has it can make the user's codes.
    public func sharedSecretKey() -> String { key.string }

    /// The `otpauth://` URL with the names that the server knows: the user's email, and the tenant's display name as
    /// the issuer. Show it as a QR code. It holds the secret.
    public var qrCodeURL: String { uri.string }

    /// Returns the `otpauth://` URL with names of your own. Show it as a QR code. It holds the secret.
    ///
    /// The app shows `issuer` and `accountName` above its codes.
    public func generateQRCodeURL(withAccountName accountName: String, issuer: String) -> String {
        let label = "\(Self.percentEncoded(issuer)):\(Self.percentEncoded(accountName))"
        return "otpauth://totp/\(label)?secret=\(sharedSecretKey())&issuer=\(Self.percentEncoded(issuer))"
            + "&algorithm=\(hashingAlgorithm)&digits=\(codeLength)&period=\(codeIntervalSeconds)"
    }

    /// RFC 3986 §2.1: all bytes but the unreserved ones. Authenticator apps read "+" as a plus sign.
    private static func percentEncoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                bytes.append(byte)
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                bytes += Array((byte < 16 ? "%0" : "%").utf8) + Array(digits.utf8)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension TOTPSecret: CustomStringConvertible {
    /// The kind of secret, without the secret.
    public var description: String { "TOTPSecret(\(codeLength) digits)" }
}

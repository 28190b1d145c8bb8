public import Base
import JSON

/// The three parts of a compact JWS (RFC 7515 §7.1), split and decoded strictly; nothing is believed yet.
///
/// Refused: more than `byteCountMax` bytes, more or fewer than three parts, base64url with padding, foreign characters
/// or non-zero unused bits, a header that is no JSON object or has duplicate members, `crit`, `b64`, a `kid` that is
/// no text or too long.
public struct JWT: Sendable {
    public let algorithm: Text
    /// The id of the signing key. Nil if it is missing: some issuers with a single key leave it out.
    public let keyID: Text?
    public let type: Text?
    /// The signed bytes: header "." payload, as they came.
    public let signedBytes: ArraySlice<UInt8>
    public let payload: [UInt8]
    public let signature: [UInt8]

    /// `keyIDByteCountMax`: other issuers' ids may be longer than ours.
    public init?(_ token: [UInt8], byteCountMax: Int, keyIDByteCountMax: Int = 64) {
        guard token.count <= byteCountMax else { return nil }
        let parts = token.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64.url.decode(parts[0]), let payload = Base64.url.decode(parts[1]),
            let signature = Base64.url.decode(parts[2])
        else { return nil }
        guard let value = try? JSONValue(parsing: header), case .object = value,
            value.member("crit") == nil, value.member("b64") == nil, let algorithm = value.member("alg")?.text
        else { return nil }
        let (keyID, type) = (value.member("kid"), value.member("typ"))
        guard keyID == nil || keyID?.text != nil, type == nil || type?.text != nil,
            (keyID?.text?.byteCount ?? 0) <= keyIDByteCountMax
        else { return nil }
        self.algorithm = algorithm
        self.keyID = keyID?.text
        self.type = type?.text
        self.signedBytes = token[token.startIndex..<parts[1].endIndex]
        self.payload = payload
        self.signature = signature
    }

    /// The length of the longest header that `namesNoKey` reads. Most headers have about a hundred bytes.
    private static let shortHeaderByteCountMax = 1_024

    /// Whether the header of a token has no `kid`, so that the keys of its signer are tried one after the other. True
    /// for a long header as well, and false for bytes that are not a token.
    ///
    /// Reads only the header, and nothing of a long one: the caller decides by it when to read the token itself.
    public static func namesNoKey(_ token: UnsafeRawBufferPointer) -> Bool {
        guard let end = token.prefix(shortHeaderByteCountMax + 1).firstIndex(of: UInt8(ascii: ".")) else {
            return token.count > shortHeaderByteCountMax
        }
        guard let header = Base64.url.decode([UInt8](token[..<end])), let value = try? JSONValue(parsing: header),
            case .object = value
        else { return false }
        return value.member("kid") == nil
    }
}

import Base
public import JSON
public import Messages

/// The rule for when a provider's statement of an email proves that the user owns the email. Pure; the whole table is
/// in TrustTests.
///
/// A trusted email joins accounts without a question, so every doubt decides against it: no email, an email that the
/// provider itself calls unverified, another domain, a missing or different claim.
public struct TrustPolicy: Sendable, Equatable {
    enum Level: Sendable, Equatable {
        case never
        case domains([Text])
        case always
    }

    let level: Level
    let requiredClaim: RequiredClaim?

    static let never = TrustPolicy(level: .never, requiredClaim: nil)
    static let always = TrustPolicy(level: .always, requiredClaim: nil)

    static func domains(_ domains: [Text], requiring claim: RequiredClaim?) -> TrustPolicy {
        TrustPolicy(level: .domains(domains), requiredClaim: claim)
    }

    private init(level: Level, requiredClaim: RequiredClaim?) {
        self.level = level
        self.requiredClaim = requiredClaim
    }

    /// The policy of the configuration. Where it leaves something open, the known provider's policy counts, but an open
    /// level is `never` if issuer or endpoints were replaced (`isElsewhere`).
    public init(_ trust: ProviderTrust?, known: KnownProvider, isElsewhere: Bool = false) {
        let claim = trust?.requiredClaim ?? known.trust.requiredClaim
        switch trust?.level ?? .unspecified {
        case .unspecified: self.init(level: isElsewhere ? .never : known.trust.level, requiredClaim: claim)
        case .never: self = .never
        case .domains: self.init(level: .domains(trust?.domains ?? []), requiredClaim: claim)
        case .always: self.init(level: .always, requiredClaim: claim)
        }
    }

    /// The claims that `isTrusted` looks at, of all claims of a provider: their number does not depend on the provider.
    public func claimsInUse(of claims: JSONValue) -> JSONValue {
        guard let requiredClaim, let text = Self.text(of: claims[requiredClaim.name]) else { return .object([]) }
        return .object([JSONValue.Member(requiredClaim.name, .string(text))])
    }

    /// `claims` are those of the verified ID token or of the user-info answer.
    public func isTrusted(_ profile: ProviderProfile) -> Bool {
        guard let domain = Self.domain(of: profile.email), profile.isEmailVerified != false else { return false }
        switch level {
        case .never: return false
        case .domains(let domains): if !domains.contains(domain) { return false }
        case .always: break
        }
        guard let requiredClaim else { return true }
        return Self.text(of: profile.claims[requiredClaim.name]) == requiredClaim.value
    }

    /// The length of the longest email that an account can have. A longer email has no domain here.
    private static let emailByteCountMax = Limits().emailMax

    /// The part after the last "@", A–Z in lower case; nil when there is no "@", or nothing before or after it.
    private static func domain(of email: Text) -> Text? {
        guard email.byteCount <= emailByteCountMax,
            let at = email.bytes.lastIndex(of: UInt8(ascii: "@")), at > 0, at + 1 < email.byteCount
        else { return nil }
        return Text(unchecked: email.bytes[(at + 1)...].lowercasedASCII)
    }

    /// Some providers write `"email_verified": "true"`.
    private static func text(of claim: JSONValue?) -> Text? {
        switch claim {
        case .string(let text): text
        case .bool(let value): value ? "true" : "false"
        case .integer(let value): Text("\(value)")
        default: nil
        }
    }
}

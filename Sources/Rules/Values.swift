public import Base
import JSON
public import Messages
import Tokens

/// The checks of a user's and a tenant's plain values, each with its reason. Pure.
public enum Values {
    /// A uid given by an admin or an import: 1..128 bytes.
    public static func checkUID(_ uid: Text, limits: Limits) throws(Failure) {
        guard (1...limits.uidMax).contains(uid.byteCount) else {
            throw .invalid(.invalidUID, field: "uid", "must have 1 to \(limits.uidMax) bytes")
        }
    }

    /// A refused row's uid as the answer names it: no longer than a uid may be, cut before a character. The answer to a
    /// request of many long uids would be above the size of a frame.
    public static func shortenedUID(_ uid: Text, limits: Limits) -> Text {
        guard uid.byteCount > limits.uidMax else { return uid }
        var kept = uid.bytes.prefix(limits.uidMax + 1)
        // Up to a byte that begins a character: the cut is before it.
        while let last = kept.popLast(), last & 0xC0 == 0x80 {}
        return Text(unchecked: Array(kept))
    }

    public static let tenantIDByteCountMax = 64

    /// `[a-z0-9-]{4,64}`.
    public static func checkTenantID(_ id: Text) throws(Failure) {
        guard isPlainID(id) else {
            throw .invalid(.invalidTenantID, field: "tenant_id", "must be 4 to 64 characters of a-z, 0-9 and -")
        }
    }

    /// Whether an id is `[a-z0-9-]{4,64}`.
    public static func isPlainID(_ id: Text) -> Bool {
        (4...64).contains(id.byteCount) && id.bytes.allSatisfy(\.isLowercaseLDH)
    }

    public static func checkDisplayName(_ name: Text, field: String = "display_name", limits: Limits) throws(Failure) {
        guard name.byteCount <= limits.displayNameMax else {
            throw .invalid(.invalidDisplayName, field: field, "must have at most \(limits.displayNameMax) bytes")
        }
        // Control characters, and the bidirectional overrides that make one name look like another.
        let hasControl = name.string.unicodeScalars.contains { scalar in
            scalar.properties.generalCategory == .control || (0x202A...0x202E).contains(scalar.value)
                || (0x2066...0x2069).contains(scalar.value)
        }
        guard !hasControl else {
            throw .invalid(.invalidDisplayName, field: field, "must not hold control or bidi-override characters")
        }
    }

    /// Empty, or an http or https URL with a host, in printable ASCII.
    public static func checkPhotoURL(_ url: Text, field: String = "photo_url", limits: Limits) throws(Failure) {
        guard url.isEmpty || HTTPURL(url, for: .link, byteCountMax: limits.photoURLMax) != nil else {
            throw .invalid(
                .invalidPhotoURL, field: field,
                "must be an http or https URL with a host, of at most \(limits.photoURLMax) bytes")
        }
    }

    /// Empty, or an https URL with a host, in printable ASCII; http only to this machine, for people who try things
    /// out.
    public static func checkContinueURL(
        _ url: Text, field: String = "continue_url", limits: Limits
    ) throws(Failure) {
        guard !url.isEmpty else { return }
        let link = HTTPURL(url, for: .link, byteCountMax: limits.continueURLMax)
        guard let link, !link.isPlaintext || link.isOfThisMachine else {
            throw .invalid(
                .invalidContinueURI, field: field,
                "must be an https URL with a host, of at most \(limits.continueURLMax) bytes")
        }
    }

    /// A locale is only matched with templates; any tag that is short enough will do.
    public static func checkLocale(_ locale: Text, limits: Limits) throws(Failure) {
        guard locale.byteCount <= limits.localeMax else {
            throw .invalid(.invalidLocale, field: "locale", "must have at most \(limits.localeMax) bytes")
        }
    }

    /// Empty, or E.164: "+", a digit of 1 to 9, up to 15 digits in all (ITU-T E.164).
    ///
    /// Admins and imports may give a user any such number. `PhoneNumber` also asks whether the number exists by the
    /// calling codes of this release, and is for numbers to which a code is sent: a user must not be lost in an import
    /// because of a calling code that came later.
    public static func checkPhoneNumber(_ number: Text, field: String = "phone_number") throws(Failure) {
        guard !number.isEmpty else { return }
        let digits = number.bytes.dropFirst()
        let isE164 =
            number.bytes.first == UInt8(ascii: "+") && (4...15).contains(digits.count)
            && digits.first != UInt8(ascii: "0") && digits.allSatisfy(\.isASCIIDigit)
        guard isE164 else {
            throw .invalid(
                .invalidPhoneNumber, field: field,
                "must be in E.164 form with at most 15 digits, for example +14155550123")
        }
    }

    /// `WEAK_PASSWORD` below the minimum, `PASSWORD_TOO_LONG` above the maximum; bytes, not characters.
    public static func checkNewPassword(_ password: Secret, limits: Limits) throws(Failure) {
        guard password.byteCount >= limits.passwordMin else {
            throw .invalid(
                .weakPassword, field: "password", "should have at least \(limits.passwordMin) bytes")
        }
        guard password.byteCount <= limits.passwordMax else {
            throw .invalid(.passwordTooLong, field: "password", "must have at most \(limits.passwordMax) bytes")
        }
    }

    /// Checks an identity of a provider other than "password" and "phone", which follow from the account itself. Nor
    /// can a provider be called "email": ID tokens list the email by this name beside the providers' identities.
    ///
    /// What the identity says of the user is held to the rules of the user's own fields. INVALID_PROVIDER,
    /// INVALID_ISSUER, INVALID_DISPLAY_NAME, INVALID_PHOTO_URL, INVALID_EMAIL, INVALID_PHONE_NUMBER.
    public static func checkProvider(
        _ provider: ProviderInfo, field: String = "provider", form: Email.Form, limits: Limits
    ) throws(Failure) {
        guard (1...providerIDByteCountMax).contains(provider.providerID.byteCount),
            (1...rawIDByteCountMax).contains(provider.rawID.byteCount),
            provider.isFederated, provider.providerID != "email"
        else {
            throw .invalid(
                .invalidProvider, field: field,
                "needs a provider_id of at most \(providerIDByteCountMax) bytes (not password, phone or email), and a "
                    + "raw_id of at most \(rawIDByteCountMax)")
        }
        try checkIdentityIssuer(provider.issuer, field: "\(field).issuer")
        try checkDisplayName(provider.displayName, field: "\(field).display_name", limits: limits)
        try checkPhotoURL(provider.photoURL, field: "\(field).photo_url", limits: limits)
        if !provider.email.isEmpty {
            _ = try email(provider.email, field: "\(field).email", form: form, limits: limits)
        }
        try checkPhoneNumber(provider.phoneNumber, field: "\(field).phone_number")
    }

    static let providerIDByteCountMax = 128
    static let rawIDByteCountMax = 256
    static let identityIssuerByteCountMax = 2_048

    /// Empty, or printable ASCII: mostly a URL. INVALID_ISSUER.
    public static func checkIdentityIssuer(_ issuer: Text, field: String) throws(Failure) {
        guard issuer.byteCount <= identityIssuerByteCountMax, issuer.bytes.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw .invalid(
                .invalidIssuer, field: field,
                "must have at most \(identityIssuerByteCountMax) characters of printable ASCII without spaces")
        }
    }

    public static let providersPerUserMax = 20

    /// INVALID_EMAIL.
    public static func email(
        _ text: Text, field: String = "email", form: Email.Form, limits: Limits
    ) throws(Failure) -> Email {
        guard text.byteCount <= limits.emailMax else {
            throw .invalid(.invalidEmail, field: field, "must have at most \(limits.emailMax) bytes")
        }
        guard let email = Email(text, form: form, limits: limits) else {
            throw .invalid(.invalidEmail, field: field, "is not an email address that can be used here")
        }
        return email
    }

    /// Checks in this order: CLAIMS_TOO_LARGE (as they were written), INVALID_CLAIMS (not a JSON object),
    /// CLAIMS_TOO_LARGE (as a token has them), FORBIDDEN_CLAIM (a reserved name).
    public static func checkCustomClaims(
        _ json: [UInt8], field: String = "custom_claims_json", limits: Limits
    ) throws(Failure) {
        guard json.count <= limits.customClaimsMax else {
            throw .invalid(.claimsTooLarge, field: field, "must have at most \(limits.customClaimsMax) bytes")
        }
        guard !json.isEmpty else { return }
        guard let value = try? JSONValue(parsing: json, maxDepth: 5), case .object(let members) = value else {
            throw .invalid(
                .invalidClaims, field: field, "must be a JSON object, without duplicate keys, nested 5 deep at most")
        }
        // A token may need more bytes than the text for the same number or character: 1e15, \b.
        guard value.serialized().count <= limits.customClaimsMax else {
            throw .invalid(
                .claimsTooLarge, field: field, "must have at most \(limits.customClaimsMax) bytes, as a token has them")
        }
        for member in members where reservedClaims.contains(member.name) {
            throw .invalid(.forbiddenClaim, field: field, "must not set the reserved claim \(member.name)")
        }
    }

    /// The names that no custom claim may have: Identity Toolkit's list, and `sid` and `gen`, by which tokens are
    /// revoked.
    public static let reservedClaims: Set<Text> = [
        "acr", "amr", "at_hash", "aud", "auth_time", "azp", "c_hash", "cnf", "exp", "firebase", "iat", "iss", "jti",
        "nbf", "nonce", "sub", "sid", "gen",
    ]

    /// The names in `json` that may be set but go into no token, because only the server sets these claims.
    public static func ignoredClaims(in json: [UInt8]) -> [Text] {
        guard !json.isEmpty, let members = (try? JSONValue(parsing: json))?.object else { return [] }
        return members.map(\.name).filter { IDTokenClaims.ownNames.contains($0) && !reservedClaims.contains($0) }
    }
}

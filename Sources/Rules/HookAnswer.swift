public import Base
import JSON
public import Messages

/// The answer of a hook.
public struct HookAnswer: Sendable {
    public static let byteCountMax = 16 * 1024
    private static let messageByteCountMax = 512

    /// Nil: go on. Otherwise the message for the end user.
    public var refusal: Text?
    public var displayName: Text?
    public var photoURL: Text?
    /// Whether the email counts as proved, as an admin's `email_verified` says it. No effect without an email.
    public var isEmailVerified: Bool?
    /// A JSON object that replaces the custom claims.
    public var customClaims: [UInt8]?
    /// A JSON object; the session's ID tokens have its members.
    public var sessionClaims: [UInt8]?
    public var isDisabled = false

    public init() {}

    /// Reads `{"allow":true, …}`; nil for any other body. Unknown members are ignored.
    ///
    /// A refusal counts no matter what else the answer holds. The hook's message may repeat a text that the end user
    /// typed, with a line feed in it: this must not make the answer a failure, which some hooks let pass.
    public init?(_ body: [UInt8], limits: Limits) {
        guard body.count <= Self.byteCountMax, let json = try? JSONValue(parsing: body, maxDepth: 8),
            let isAllowed = json["allow"]?.bool
        else { return nil }
        let message: JSONValue? = json["message"].flatMap { $0.isNull ? nil : $0 }
        let line = message.flatMap(Self.line)
        guard isAllowed else {
            refusal = line ?? .empty
            return
        }
        if message != nil, line == nil { return nil }
        do throws(Failure) {
            if let name = json["display_name"], !name.isNull {
                guard let text = name.text else { return nil }
                try Values.checkDisplayName(text, limits: limits)
                displayName = text
            }
            if let url = json["photo_url"], !url.isNull {
                guard let text = url.text else { return nil }
                try Values.checkPhotoURL(text, limits: limits)
                photoURL = text
            }
            customClaims = try Self.claims(json["custom_claims"], limits: limits)
            sessionClaims = try Self.claims(json["session_claims"], limits: limits)
        } catch {
            return nil
        }
        if let isVerified = json["email_verified"], !isVerified.isNull {
            guard let value = isVerified.bool else { return nil }
            isEmailVerified = value
        }
        if let disabled = json["disabled"], !disabled.isNull {
            guard let value = disabled.bool else { return nil }
            isDisabled = value
        }
    }

    /// Nil for a message that is no text, too long, or more than one line.
    private static func line(_ message: JSONValue) -> Text? {
        guard let text = message.text, text.byteCount <= messageByteCountMax,
            text.bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return nil }
        return text
    }

    private static func claims(_ value: JSONValue?, limits: Limits) throws(Failure) -> [UInt8]? {
        guard let value, !value.isNull else { return nil }
        let json = value.serialized()
        try Values.checkCustomClaims(json, limits: limits)
        return value == .object([]) ? [] : json
    }
}

extension HookAnswer {
    /// Applies the hooks' changes to the account.
    public func apply(to account: inout Account) {
        let old: Account? = isEmailVerified == nil ? nil : account
        if let displayName { account.user.displayName = displayName }
        if let photoURL { account.user.photoURL = photoURL }
        if let isEmailVerified { account.user.emailVerified = isEmailVerified && !account.user.email.isEmpty }
        if let customClaims { account.user.customClaimsJSON = customClaims }
        if isDisabled { account.user.disabled = true }
        if displayName != nil || photoURL != nil { account.deriveProviders() }
        if let old { account.noteEmailSetByAdmin(over: old) }
    }

    /// Whether the answer counts for the user as it is `now`. `asked`: the user as it was when the hooks were asked.
    /// Nil means that there is no account.
    ///
    /// Whether the user is new decides which hooks are asked, and for a disabled user no hook is asked. Hooks judge a
    /// user by the email and the phone number. A hook's claims may repeat those that the hook was told, and a claim
    /// that an admin took away meanwhile must not come back.
    public func counts(for now: User?, asked: User?) -> Bool {
        now?.disabled == asked?.disabled && now?.email == asked?.email && now?.emailVerified == asked?.emailVerified
            && now?.phoneNumber == asked?.phoneNumber
            && (customClaims == nil || now?.customClaimsJSON == asked?.customClaimsJSON)
    }

    /// Two answers as one; the later one counts where both say something.
    public func followed(by later: HookAnswer) -> HookAnswer {
        var both = self
        both.refusal = refusal ?? later.refusal
        both.displayName = later.displayName ?? displayName
        both.photoURL = later.photoURL ?? photoURL
        both.isEmailVerified = later.isEmailVerified ?? isEmailVerified
        both.customClaims = later.customClaims ?? customClaims
        both.sessionClaims = later.sessionClaims ?? sessionClaims
        both.isDisabled = isDisabled || later.isDisabled
        return both
    }

    /// The claims with a hook's session claims added. The first factor's own members win: a custom token says who its
    /// user is.
    public static func merged(_ sessionClaims: [UInt8], into claims: [UInt8]) -> [UInt8] {
        guard !sessionClaims.isEmpty, let added = (try? JSONValue(parsing: sessionClaims))?.object else {
            return claims
        }
        let own = claims.isEmpty ? [] : (try? JSONValue(parsing: claims))?.object ?? []
        return JSONValue.object(own + added.filter { member in !own.contains { $0.name == member.name } }).serialized()
    }
}

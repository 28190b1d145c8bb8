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

    /// The reason why an answer cannot be used. It holds no part of the answer, because that may be an end user's.
    public struct Fault: Error, Sendable {
        public let reason: String

        fileprivate init(_ reason: String) { self.reason = reason }
    }

    /// Reads `{"allow":true, …}`. Unknown members are ignored. Throws for a body that cannot be used.
    ///
    /// A refusal counts no matter what else the answer holds: the hook's message may repeat a text that the end user
    /// typed. For the same reason a body that cannot be used must never count as permission. It may be a refusal that
    /// the end user made unreadable.
    public init(_ body: [UInt8], limits: Limits) throws(Fault) {
        let json = try Self.parsed(body)
        guard let isAllowed = json["allow"]?.bool else { throw Fault("it has no member allow that is true or false") }
        let message: JSONValue? = json["message"].flatMap { $0.isNull ? nil : $0 }
        let line = message.flatMap(Self.line)
        guard isAllowed else {
            refusal = line ?? .empty
            return
        }
        if message != nil, line == nil { throw Self.fault(of: "message") }
        displayName = try Self.text("display_name", of: json)
        photoURL = try Self.text("photo_url", of: json)
        isEmailVerified = try Self.bool("email_verified", of: json)
        isDisabled = try Self.bool("disabled", of: json) ?? false
        do throws(Failure) {
            if let displayName { try Values.checkDisplayName(displayName, limits: limits) }
            if let photoURL { try Values.checkPhotoURL(photoURL, limits: limits) }
            customClaims = try Self.claims(json["custom_claims"], limits: limits)
            sessionClaims = try Self.claims(json["session_claims"], limits: limits)
        } catch {
            throw Fault("its name, photo or claims are refused with \(error.reason)")
        }
    }

    private static func parsed(_ body: [UInt8]) throws(Fault) -> JSONValue {
        guard !body.isEmpty else { throw Fault("it is empty") }
        guard body.count <= byteCountMax else { throw Fault("it is too long") }
        do throws(JSONError) {
            return try JSONValue(parsing: body, maxDepth: 8)
        } catch {
            throw Fault(error.description)
        }
    }

    /// Nil for a member that is missing or null.
    private static func text(_ name: Text, of json: JSONValue) throws(Fault) -> Text? {
        guard let value = json[name], !value.isNull else { return nil }
        guard let text = value.text else { throw fault(of: name) }
        return text
    }

    /// Nil for a member that is missing or null.
    private static func bool(_ name: Text, of json: JSONValue) throws(Fault) -> Bool? {
        guard let value = json[name], !value.isNull else { return nil }
        guard let bool = value.bool else { throw fault(of: name) }
        return bool
    }

    private static func fault(of member: Text) -> Fault { Fault("its member \(member) has another form") }

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

    /// The names of an answer's members by which an account was changed, between commas. `disabled` is not among them:
    /// a user whom a hook disables has an event of its own.
    public static func changes(from old: Account, to new: Account) -> Text {
        var names: [String] = []
        if old.user.emailVerified != new.user.emailVerified || old.isEmailSetByAdmin != new.isEmailSetByAdmin {
            names.append("email_verified")
        }
        if old.user.displayName != new.user.displayName { names.append("display_name") }
        if old.user.photoURL != new.user.photoURL { names.append("photo_url") }
        if old.user.customClaimsJSON != new.user.customClaimsJSON { names.append("custom_claims") }
        return names.isEmpty ? .empty : Text(names.joined(separator: ","))
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

import Base
import JSON
import Messages

/// The record of the signed-in user that is kept between runs: JSON with a version.
///
/// `attempt` is there while a refresh is under way. With it the next run repeats the same request, and gets the answer
/// that this run may have lost.
struct SavedState: Sendable, Equatable {
    static let version: Int64 = 1

    var tenantID: Text
    var account: Messages.User
    var idToken: Text
    var refreshToken: Text
    var lifetime: Duration
    /// The time of the request for the tokens, by the wall clock.
    var askedAt: Timestamp
    var attempt: RefreshAttempt?
    /// The token by which the server recognises this device at the next sign-in.
    var deviceToken: Text
    /// The attempt of a sign-up that is under way.
    var signUpAttempt: [UInt8]?

    func encoded() -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("version", integer: Self.version)
        json.member("tenant_id", text: tenantID)
        json.member("id_token", text: idToken)
        json.member("refresh_token", text: refreshToken)
        json.member("id_token_lifetime_micros", integer: lifetime.microseconds)
        json.member("asked_at_micros", integer: askedAt.microseconds)
        if !deviceToken.isEmpty { json.member("device_token", text: deviceToken) }
        if let signUpAttempt { json.member("begun", text: Hex.encode(signUpAttempt)) }
        if let attempt {
            json.name("refresh_attempt")
            json.beginObject()
            json.member("id", text: Hex.encode(attempt.id))
            json.member("refresh_token", text: attempt.refreshToken)
            json.endObject()
        }
        json.name("user")
        json.value(account.saved)
        json.endObject()
        return json.bytes
    }

    /// The record while a sign-up is under way and nobody is signed in.
    static func encoded(signUpAttempt: [UInt8], tenantID: Text) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("version", integer: version)
        json.member("tenant_id", text: tenantID)
        json.member("begun", text: Hex.encode(signUpAttempt))
        json.endObject()
        return json.bytes
    }

    /// The sign-up that was under way when the record was saved, if it is of this version and tenant.
    static func signUpAttempt(in record: [UInt8], tenantID: Text) -> [UInt8]? {
        guard let json = try? JSONValue(parsing: record), json["version"]?.integer == version,
            json["tenant_id"]?.text == tenantID,
            let attempt = json["begun"]?.text.flatMap({ Hex.decode($0.bytes) }),
            attempt.count == RefreshAttempt.idByteCount
        else { return nil }
        return attempt
    }

    /// Nil for a record that has only a sign-up in it. Throws `damaged`, `newerVersion`, `otherTenant`.
    init?(_ record: [UInt8], tenantID: Text) throws(AuthStorageError) {
        guard let json = try? JSONValue(parsing: record), let version = json["version"]?.integer else {
            throw .damaged("it is not JSON with a version")
        }
        guard version == Self.version else {
            throw AuthStorageError(
                .newerVersion, "The stored record has version \(version); this library reads \(Self.version).")
        }
        if json["user"] == nil, Self.signUpAttempt(in: record, tenantID: tenantID) != nil { return nil }
        guard let saved = json["user"], let account = Messages.User(saved: saved),
            let idToken = json["id_token"]?.text, let refreshToken = json["refresh_token"]?.text,
            let lifetime = json["id_token_lifetime_micros"]?.integer, lifetime >= 0,
            let askedAt = json["asked_at_micros"]?.integer, let savedTenantID = json["tenant_id"]?.text
        else { throw .damaged("a field is missing") }
        guard let payload = try? IDTokenPayload(idToken), payload.uid == account.uid else {
            throw .damaged("its user is not the one of its ID token")
        }
        guard savedTenantID == tenantID else {
            throw AuthStorageError(
                .otherTenant, "The stored record is of tenant \"\(savedTenantID)\", not of \"\(tenantID)\".")
        }
        if let saved = json["refresh_attempt"] {
            guard let id = saved["id"]?.text.flatMap({ Hex.decode($0.bytes) }), id.count == RefreshAttempt.idByteCount,
                let token = saved["refresh_token"]?.text
            else { throw .damaged("the refresh attempt cannot be read") }
            attempt = RefreshAttempt(id: id, refreshToken: token)
        }
        self.tenantID = tenantID
        self.account = account
        self.idToken = idToken
        self.refreshToken = refreshToken
        self.lifetime = .microseconds(lifetime)
        self.askedAt = Timestamp(microseconds: askedAt)
        // Older records have no device token.
        self.deviceToken = json["device_token"]?.text ?? .empty
        self.signUpAttempt = Self.signUpAttempt(in: record, tenantID: tenantID)
    }

    init(
        account: Messages.User, tokens: TokenSet, attempt: RefreshAttempt?, tenantID: Text, deviceToken: Text = .empty
    ) {
        self.deviceToken = deviceToken
        self.tenantID = tenantID
        self.account = account
        self.idToken = tokens.idToken
        self.refreshToken = tokens.refreshToken
        self.lifetime = tokens.lifetime
        self.askedAt = tokens.asked.wall
        self.attempt = attempt
    }
}

extension AuthStorageError {
    fileprivate static func damaged(_ what: String) -> AuthStorageError {
        AuthStorageError(.damaged, "The stored record cannot be used: \(what).")
    }
}

extension Messages.User {
    /// The fields that a client receives. Empty fields are left out.
    fileprivate var saved: JSONValue {
        var members: [JSONValue.Member] = [.init("uid", .string(uid))]
        func add(_ name: Text, _ text: Text) {
            if !text.isEmpty { members.append(.init(name, .string(text))) }
        }
        add("tenant_id", tenantID)
        add("email", email)
        add("display_name", displayName)
        add("photo_url", photoURL)
        add("phone_number", phoneNumber)
        if let claims = Text(validating: customClaimsJSON) { add("custom_claims", claims) }
        members.append(.init("email_verified", .bool(emailVerified)))
        members.append(.init("created_at_micros", .integer(createdAtMicros)))
        members.append(.init("last_sign_in_at_micros", .integer(lastSignInAtMicros)))
        members.append(.init("providers", .array(providers.map(\.saved))))
        if !secondFactors.isEmpty {
            members.append(.init("second_factors", .array(secondFactors.map(\.saved))))
            members.append(.init("recovery_code_count", .integer(Int64(recoveryCodeCount))))
        }
        return .object(members)
    }

    /// Nil without a uid.
    fileprivate init?(saved: JSONValue) {
        guard let uid = saved["uid"]?.text, !uid.isEmpty else { return nil }
        self.init(
            tenantID: saved["tenant_id"]?.text ?? .empty, uid: uid, email: saved["email"]?.text ?? .empty,
            emailVerified: saved["email_verified"]?.bool ?? false,
            displayName: saved["display_name"]?.text ?? .empty, photoURL: saved["photo_url"]?.text ?? .empty,
            phoneNumber: saved["phone_number"]?.text ?? .empty,
            providers: saved["providers"]?.array?.map { ProviderInfo(saved: $0) } ?? [],
            customClaimsJSON: saved["custom_claims"]?.text?.bytes ?? [],
            createdAtMicros: saved["created_at_micros"]?.integer ?? 0,
            lastSignInAtMicros: saved["last_sign_in_at_micros"]?.integer ?? 0,
            secondFactors: saved["second_factors"]?.array?.map { SecondFactor(saved: $0) } ?? [],
            recoveryCodeCount: Int32(clamping: saved["recovery_code_count"]?.integer ?? 0))
    }
}

extension ProviderInfo {
    fileprivate var saved: JSONValue {
        [
            "provider_id": .string(providerID), "raw_id": .string(rawID), "email": .string(email),
            "display_name": .string(displayName), "photo_url": .string(photoURL),
            "phone_number": .string(phoneNumber), "issuer": .string(issuer),
        ]
    }

    /// Older records have no issuer.
    fileprivate init(saved: JSONValue) {
        func text(_ name: Text) -> Text { saved[name]?.text ?? .empty }
        self.init(
            providerID: text("provider_id"), rawID: text("raw_id"), email: text("email"),
            displayName: text("display_name"), photoURL: text("photo_url"), phoneNumber: text("phone_number"),
            issuer: text("issuer"))
    }
}

extension SecondFactor {
    fileprivate var saved: JSONValue {
        [
            "factor_id": .string(factorID), "kind": .integer(Int64(kind.rawValue)),
            "display_name": .string(displayName), "phone_number": .string(phoneNumber),
            "enrolled_at_micros": .integer(enrolledAtMicros),
        ]
    }

    fileprivate init(saved: JSONValue) {
        func text(_ name: Text) -> Text { saved[name]?.text ?? .empty }
        self.init(
            factorID: text("factor_id"),
            kind: SecondFactorKind(rawValue: Int32(clamping: saved["kind"]?.integer ?? 0)) ?? .unspecified,
            displayName: text("display_name"), phoneNumber: text("phone_number"),
            enrolledAtMicros: saved["enrolled_at_micros"]?.integer ?? 0)
    }
}

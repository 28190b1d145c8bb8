import Base
import JSON

/// The claims of an ID token that its verifier uses. Nil for claims of another issuer or audience, and if a claim is
/// missing or has another form.
struct TokenClaims: Equatable {
    var uid: Text
    var tenantID = Text.empty
    /// 16 bytes.
    var sessionID: [UInt8]
    var generation: Int64
    var authTime: Int64
    var issuedAt: Int64
    var expiresAt: Int64
    var signInProvider: Text

    init?(_ payload: [UInt8], issuer: Text, audience: Text) {
        do {
            self = try payload.withUnsafeBytes { bytes throws(JSONScanner.Declined) in
                try TokenClaims(scanning: bytes, issuer: issuer, audience: audience)
            }
        } catch {
            self.init(parsing: payload, issuer: issuer, audience: audience)
        }
    }

    init?(parsing payload: [UInt8], issuer: Text, audience: Text) {
        guard let claims = try? JSONValue(parsing: payload), case .object = claims,
            claims.member("iss")?.text == issuer, claims.member("aud")?.text == audience,
            let uid = claims.member("sub")?.text, claims.member("user_id")?.text == uid,
            let issuedAt = claims.member("iat")?.integer, let expiresAt = claims.member("exp")?.integer,
            let authTime = claims.member("auth_time")?.integer, let generation = claims.member("gen")?.integer,
            let sessionID = claims.member("sid")?.text.flatMap({ Hex.decode($0.bytes) }), sessionID.count == 16,
            let firebase = claims.member("firebase"),
            let signInProvider = firebase.member("sign_in_provider")?.text
        else { return nil }
        if let tenant = firebase.member("tenant") {
            guard let name = tenant.text else { return nil }
            tenantID = name
        }
        self.uid = uid
        self.sessionID = sessionID
        self.generation = generation
        self.authTime = authTime
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.signInProvider = signInProvider
    }

    /// Declines every payload that `init(parsing:)` might refuse.
    init(scanning payload: UnsafeRawBufferPointer, issuer: Text, audience: Text) throws(JSONScanner.Declined) {
        var found = ScannedClaims()
        try JSONScanner.scan(payload) { name, value in found.note(name, value) }
        var firebase = ScannedFirebaseClaims()
        if let object = found.firebase { try JSONScanner.scan(object) { firebase.note($0, $1) } }
        guard found.issuer.isSame(issuer), found.audience.isSame(audience), let uid = found.subject,
            let userID = found.userID, userID.hasSameBytes(as: uid), let issuedAt = found.issuedAt,
            let expiresAt = found.expiresAt, let authTime = found.authTime, let generation = found.generation,
            let sessionID = found.sessionID.flatMap({ Hex.decode($0) }), sessionID.count == 16,
            let signInProvider = firebase.signInProvider, !firebase.hasOddTenant
        else { throw JSONScanner.Declined() }
        // The scanner found the whole payload to be UTF-8.
        self.uid = Text(unchecked: [UInt8](uid))
        self.tenantID = firebase.tenant.map { Text(unchecked: [UInt8]($0)) } ?? .empty
        self.sessionID = sessionID
        self.generation = generation
        self.authTime = authTime
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.signInProvider = Text(unchecked: [UInt8](signInProvider))
    }
}

/// The places of the claims in a payload.
private struct ScannedClaims {
    var issuer: UnsafeRawBufferPointer?
    var audience: UnsafeRawBufferPointer?
    var subject: UnsafeRawBufferPointer?
    var userID: UnsafeRawBufferPointer?
    var sessionID: UnsafeRawBufferPointer?
    var firebase: UnsafeRawBufferPointer?
    var issuedAt: Int64?
    var expiresAt: Int64?
    var authTime: Int64?
    var generation: Int64?

    mutating func note(_ name: UnsafeRawBufferPointer, _ value: JSONScanner.Value) {
        switch value {
        case .text(let text):
            if name.isSame("iss") { issuer = text }
            if name.isSame("aud") { audience = text }
            if name.isSame("sub") { subject = text }
            if name.isSame("user_id") { userID = text }
            if name.isSame("sid") { sessionID = text }
        case .integer(let number):
            if name.isSame("iat") { issuedAt = number }
            if name.isSame("exp") { expiresAt = number }
            if name.isSame("auth_time") { authTime = number }
            if name.isSame("gen") { generation = number }
        case .object(let object):
            if name.isSame("firebase") { firebase = object }
        case .other: break
        }
    }
}

private struct ScannedFirebaseClaims {
    var signInProvider: UnsafeRawBufferPointer?
    var tenant: UnsafeRawBufferPointer?
    var hasOddTenant = false

    mutating func note(_ name: UnsafeRawBufferPointer, _ value: JSONScanner.Value) {
        guard case .text(let text) = value else {
            if name.isSame("tenant") { hasOddTenant = true }
            return
        }
        if name.isSame("sign_in_provider") { signInProvider = text }
        if name.isSame("tenant") { tenant = text }
    }
}

extension UnsafeRawBufferPointer {
    @inline(__always)
    fileprivate func isSame(_ name: StaticString) -> Bool {
        hasSameBytes(as: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }
}

extension UnsafeRawBufferPointer? {
    fileprivate func isSame(_ text: Text) -> Bool {
        guard let self else { return false }
        return text.bytes.withUnsafeBytes { $0.hasSameBytes(as: self) }
    }
}

import Base
import JSON
import Messages

/// One user of a Firebase export as `Users.Import` takes it.
struct FirebaseUser {
    /// The reason why a row cannot be sent.
    struct Rejection: Error, Equatable {
        var uid: Text
        var reason: String
        var message: String
    }

    let user: ImportUser
    /// The names of the export's fields that have no place in Postern.
    let ignored: [String]

    private static let known: Set<String> = [
        "localId", "email", "emailVerified", "passwordHash", "salt", "displayName", "photoUrl", "lastSignedInAt",
        "lastLoginAt", "createdAt", "phoneNumber", "disabled", "customAttributes", "providerUserInfo", "mfaInfo",
    ]

    init(parsing bytes: [UInt8]) throws(Rejection) {
        let json: JSONValue
        do throws(JSONError) {
            json = try JSONValue(parsing: bytes)
        } catch {
            throw .malformed("\(error)")
        }
        let fields = Fields(json: json, uid: json["localId"]?.text ?? .empty)
        var user = ImportUser()
        user.uid = try fields.text("localId")
        user.email = try fields.text("email")
        user.emailVerified = try fields.bool("emailVerified")
        user.displayName = try fields.text("displayName")
        user.photoURL = try fields.text("photoUrl")
        user.phoneNumber = try fields.text("phoneNumber")
        user.disabled = try fields.bool("disabled")
        user.createdAtMicros = try fields.micros("createdAt")
        user.lastSignInAtMicros = try max(fields.micros("lastSignedInAt"), fields.micros("lastLoginAt"))
        user.passwordHash = Secret(try fields.base64("passwordHash"))
        user.salt = try fields.base64("salt")
        let claims = try fields.text("customAttributes")
        user.customClaimsJSON = claims == "{}" ? [] : claims.bytes
        user.providers = try fields.providers()
        user.secondFactors = try fields.phoneFactors()
        self.user = user
        self.ignored = (json.object ?? []).map(\.name.string).filter { !Self.known.contains($0) }
    }

    private struct Fields {
        let json: JSONValue
        let uid: Text

        func wrong(_ name: Text, _ expected: String) -> Rejection {
            .malformed("\(name) is no \(expected)", uid: uid)
        }

        /// Nil when it is absent or null.
        private func value(_ name: Text) -> JSONValue? { json[name].flatMap { $0.isNull ? nil : $0 } }

        func text(_ name: Text) throws(Rejection) -> Text {
            guard let value = value(name) else { return .empty }
            guard let text = value.text else { throw wrong(name, "string") }
            return text
        }

        func bool(_ name: Text) throws(Rejection) -> Bool {
            guard let value = value(name) else { return false }
            guard let bool = value.bool else { throw wrong(name, "true or false") }
            return bool
        }

        /// Firebase writes milliseconds as a string.
        func micros(_ name: Text) throws(Rejection) -> Int64 {
            guard let value = value(name) else { return 0 }
            guard let milliseconds = value.integer ?? value.string.flatMap({ Int64($0) }), milliseconds >= 0,
                milliseconds < Int64.max / 1_000
            else { throw wrong(name, "number of milliseconds") }
            return milliseconds * 1_000
        }

        func base64(_ name: Text) throws(Rejection) -> [UInt8] {
            guard let bytes = decodeLenientBase64(try text(name)) else { throw wrong(name, "base64") }
            return bytes
        }

        /// Factors that are phone numbers; others have a secret, which Firebase does not export.
        func phoneFactors() throws(Rejection) -> [ImportSecondFactor] {
            guard let value = value("mfaInfo") else { return [] }
            guard let entries = value.array else { throw wrong("mfaInfo", "array") }
            var factors: [ImportSecondFactor] = []
            for entry in entries {
                let fields = Fields(json: entry, uid: uid)
                let number = try fields.text("phoneInfo")
                if number.isEmpty { continue }
                let enrolledAt = try Timestamp(rfc3339: fields.text("enrolledAt").string)
                let factor = SecondFactor(
                    factorID: try fields.text("mfaEnrollmentId"), kind: .phone,
                    displayName: try fields.text("displayName"), phoneNumber: number,
                    enrolledAtMicros: enrolledAt?.microseconds ?? 0)
                factors.append(ImportSecondFactor(factor: factor))
            }
            return factors
        }

        func providers() throws(Rejection) -> [ProviderInfo] {
            guard let value = value("providerUserInfo") else { return [] }
            guard let entries = value.array else { throw wrong("providerUserInfo", "array") }
            return try entries.map { (entry) throws(Rejection) in
                let fields = Fields(json: entry, uid: uid)
                return ProviderInfo(
                    providerID: try fields.text("providerId"), rawID: try fields.text("rawId"),
                    email: try fields.text("email"), displayName: try fields.text("displayName"),
                    photoURL: try fields.text("photoUrl"), phoneNumber: try fields.text("phoneNumber"))
            }
        }
    }
}

/// Decodes base64 in either alphabet, with or without padding: Firebase's own tools write both. Nil: something else.
func decodeLenientBase64(_ text: Text) -> [UInt8]? {
    var digits = text.bytes
    while digits.last == UInt8(ascii: "=") { digits.removeLast() }
    for index in digits.indices {
        switch digits[index] {
        case UInt8(ascii: "+"): digits[index] = UInt8(ascii: "-")
        case UInt8(ascii: "/"): digits[index] = UInt8(ascii: "_")
        default: break
        }
    }
    return Base64.url.decode(digits)
}

extension FirebaseUser.Rejection {
    static func malformed(_ message: String, uid: Text = .empty) -> FirebaseUser.Rejection {
        FirebaseUser.Rejection(uid: uid, reason: "MALFORMED_ROW", message: message)
    }
}

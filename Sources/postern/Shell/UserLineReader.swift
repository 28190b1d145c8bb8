import Base
import JSON
import Messages

/// One line of our own files of users.
struct UserLineReader {
    enum Line {
        case item(ImportItem)
        case header(endsWithCount: Bool)
        case end(userCount: Int64)
    }

    private let json: JSONValue
    private let uid: Text

    init(_ line: [UInt8]) throws(FirebaseUser.Rejection) {
        do throws(JSONError) {
            json = try JSONValue(parsing: line)
        } catch {
            throw .malformed("\(error)")
        }
        uid = json["uid"]?.text ?? .empty
        guard json.object != nil else { throw .malformed("the line is no object") }
    }

    private init(_ json: JSONValue, uid: Text) {
        (self.json, self.uid) = (json, uid)
    }

    func read() throws(FirebaseUser.Rejection) -> Line {
        if json["postern_users"] != nil {
            guard json["postern_users"]?.integer == 1 else { throw wrong("postern_users", "version that is known: 1") }
            if json["user_count"] != nil { return .end(userCount: try integer("user_count")) }
            return .header(endsWithCount: try bool("ends_with_count"))
        }
        if json["algorithm"] != nil { return .item(.hashSpec(try hashSpec())) }
        return .item(.user(try user(), ignored: []))
    }

    private func hashSpec() throws(FirebaseUser.Rejection) -> NamedHashSpec {
        try checkNames([
            "hash_spec", "algorithm", "signer_key", "salt_separator", "rounds", "mem_cost", "function", "order",
            "rounds_over_hex", "block_size", "parallelization", "variant", "version", "associated_data",
        ])
        return NamedHashSpec(name: try text("hash_spec"), spec: PasswordHashSpec(algorithm: try algorithm()))
    }

    private func algorithm() throws(FirebaseUser.Rejection) -> PasswordHashSpec.Algorithm {
        let rounds = Int32(clamping: try integer("rounds"))
        let memoryCost = Int32(clamping: try integer("mem_cost"))
        switch try text("algorithm") {
        case "argon2id": return .argon2id(Argon2idSpec())
        case "argon2":
            return .argon2(
                Argon2Spec(
                    variant: try argon2Variant(), version: Int32(clamping: try integer("version")),
                    memoryKib: memoryCost, iterations: rounds,
                    parallelism: Int32(clamping: try integer("parallelization")),
                    associatedData: try bytes("associated_data")))
        case "bcrypt": return .bcrypt(BcryptSpec())
        case "firebase-scrypt":
            return .firebaseScrypt(
                FirebaseScryptSpec(
                    signerKey: Secret(try bytes("signer_key")), saltSeparator: try bytes("salt_separator"),
                    rounds: rounds, memoryCost: memoryCost))
        case "digest":
            return .digest(
                DigestSpec(
                    function: try function(), rounds: rounds, order: try order(),
                    roundsOverHex: try bool("rounds_over_hex")))
        case "hmac":
            return .hmac(
                HmacSpec(
                    function: try function(), signerKey: Secret(try bytes("signer_key")), order: try order()))
        case "pbkdf2": return .pbkdf2(Pbkdf2Spec(function: try function(), rounds: rounds))
        case "scrypt":
            return .scrypt(
                ScryptSpec(
                    memoryCost: memoryCost, blockSize: Int32(clamping: try integer("block_size")),
                    parallelization: Int32(clamping: try integer("parallelization"))))
        default: throw wrong("algorithm", "algorithm that is known")
        }
    }

    private func function() throws(FirebaseUser.Rejection) -> PasswordHashFunction {
        let name = try text("function")
        guard let found = HashAlgorithm.functions.first(where: { $0.function.fileName == name }) else {
            throw wrong("function", "function that is known: md5, sha1, sha256 or sha512")
        }
        return found.function
    }

    private func argon2Variant() throws(FirebaseUser.Rejection) -> Argon2Variant {
        let name = try text("variant")
        guard let found = HashAlgorithm.argon2Variants.first(where: { Text($0.0) == name }) else {
            throw wrong("variant", "variant that is known: argon2d, argon2i or argon2id")
        }
        return found.1
    }

    private func order() throws(FirebaseUser.Rejection) -> PasswordHashOrder {
        let name = try text("order")
        if name.isEmpty { return .unspecified }
        guard let found = HashAlgorithm.orders.first(where: { $0.1.fileName == name }) else {
            throw wrong("order", "order that is known: salt_first or password_first")
        }
        return found.1
    }

    private func user() throws(FirebaseUser.Rejection) -> ImportUser {
        try checkNames([
            "uid", "email", "email_verified", "display_name", "photo_url", "phone_number", "disabled",
            "custom_claims_json", "created_at_micros", "last_sign_in_at_micros", "password_hash", "salt", "hash_spec",
            "email_link_sign_in", "password_updated_at_micros", "providers", "second_factors", "custom_token_sign_in",
            "email_typed_by_user",
        ])
        var user = ImportUser(uid: try text("uid"), email: try text("email"))
        user.emailVerified = try bool("email_verified")
        user.displayName = try text("display_name")
        user.photoURL = try text("photo_url")
        user.phoneNumber = try text("phone_number")
        user.disabled = try bool("disabled")
        user.customClaimsJSON = try text("custom_claims_json").bytes
        user.createdAtMicros = try integer("created_at_micros")
        user.lastSignInAtMicros = try integer("last_sign_in_at_micros")
        user.passwordHash = Secret(try bytes("password_hash"))
        user.salt = try bytes("salt")
        user.hashSpec = try text("hash_spec")
        user.emailLinkSignIn = try bool("email_link_sign_in")
        user.passwordUpdatedAtMicros = try integer("password_updated_at_micros")
        user.providers = try objects("providers").map { (entry) throws(FirebaseUser.Rejection) in try entry.provider() }
        user.secondFactors = try objects("second_factors").map { (entry) throws(FirebaseUser.Rejection) in
            try entry.factor()
        }
        user.customTokenSignIn = try bool("custom_token_sign_in")
        user.emailTypedByUser = try bool("email_typed_by_user")
        return user
    }

    private func provider() throws(FirebaseUser.Rejection) -> ProviderInfo {
        try checkNames(["provider_id", "raw_id", "email", "display_name", "photo_url", "phone_number", "issuer"])
        return ProviderInfo(
            providerID: try text("provider_id"), rawID: try text("raw_id"), email: try text("email"),
            displayName: try text("display_name"), photoURL: try text("photo_url"),
            phoneNumber: try text("phone_number"), issuer: try text("issuer"))
    }

    private func factor() throws(FirebaseUser.Rejection) -> ImportSecondFactor {
        try checkNames(["factor_id", "kind", "display_name", "phone_number", "enrolled_at_micros", "totp_secret"])
        let kind: SecondFactorKind
        switch try text("kind") {
        case "phone": kind = .phone
        case "totp": kind = .totp
        default: throw wrong("kind", "kind of second factor: phone or totp")
        }
        let factor = SecondFactor(
            factorID: try text("factor_id"), kind: kind, displayName: try text("display_name"),
            phoneNumber: try text("phone_number"), enrolledAtMicros: try integer("enrolled_at_micros"))
        return ImportSecondFactor(factor: factor, totpSecret: Secret(try bytes("totp_secret")))
    }

    // MARK: Fields

    private func wrong(_ name: Text, _ expected: String) -> FirebaseUser.Rejection {
        .malformed("\(name) is no \(expected)", uid: uid)
    }

    /// Refuses unknown names, because a misspelt name would lose its value.
    private func checkNames(_ known: Set<Text>) throws(FirebaseUser.Rejection) {
        for member in json.object ?? [] where !known.contains(member.name) {
            throw .malformed("there is no field \(member.name)", uid: uid)
        }
    }

    private func text(_ name: Text) throws(FirebaseUser.Rejection) -> Text {
        guard let value = json[name] else { return .empty }
        guard let text = value.text else { throw wrong(name, "string") }
        return text
    }

    private func bool(_ name: Text) throws(FirebaseUser.Rejection) -> Bool {
        guard let value = json[name] else { return false }
        guard let bool = value.bool else { throw wrong(name, "true or false") }
        return bool
    }

    private func integer(_ name: Text) throws(FirebaseUser.Rejection) -> Int64 {
        guard let value = json[name] else { return 0 }
        guard let integer = value.integer, integer >= 0 else { throw wrong(name, "whole number from 0 on") }
        return integer
    }

    private func bytes(_ name: Text) throws(FirebaseUser.Rejection) -> [UInt8] {
        guard let bytes = decodeLenientBase64(try text(name)) else { throw wrong(name, "base64") }
        return bytes
    }

    private func objects(_ name: Text) throws(FirebaseUser.Rejection) -> [UserLineReader] {
        guard let value = json[name] else { return [] }
        guard let array = value.array, array.allSatisfy({ $0.object != nil }) else {
            throw wrong(name, "array of objects")
        }
        return array.map { UserLineReader($0, uid: uid) }
    }
}

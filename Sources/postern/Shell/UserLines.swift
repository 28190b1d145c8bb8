// Our own files of users: an object in each line, with all their data. Bytes are base64. Empty fields are left out.
//
//     {"postern_users":1,"tenant_id":"acme","ends_with_count":true}
//     {"hash_spec":"firebase-scrypt-x1","algorithm":"firebase-scrypt","signer_key":"…","salt_separator":"Bw==", …}
//     {"uid":"ann","email":"ann@example.com","password_hash":"…","hash_spec":"firebase-scrypt-x1"}
//     {"postern_users":1,"user_count":1}
//
// The last line shows that the file is whole. Older versions of postern leave it out, and read it as another header.
// The header may be missing, as in files that other programs make: then no last line is expected.

import Base
import JSON
import Messages

enum UserLines {
    static func header(tenantID: Text) -> [UInt8] {
        line(["postern_users": .integer(1), "tenant_id": .string(tenantID), "ends_with_count": .bool(true)])
    }

    static func end(userCount: Int64) -> [UInt8] {
        line(["postern_users": .integer(1), "user_count": .integer(userCount)])
    }

    static func line(_ spec: NamedHashSpec) -> [UInt8] {
        var json = ObjectBuilder()
        json.text("hash_spec", spec.name)
        switch spec.spec?.algorithm {
        case .argon2id: json.text("algorithm", "argon2id")
        case .argon2(let parameters):
            json.text("algorithm", "argon2")
            let variant = HashAlgorithm.argon2Variants.first { $0.1 == parameters.variant }
            json.text("variant", Text(variant?.0 ?? ""))
            json.integer("version", Int64(parameters.version))
            json.integer("mem_cost", Int64(parameters.memoryKib))
            json.integer("rounds", Int64(parameters.iterations))
            json.integer("parallelization", Int64(parameters.parallelism))
            json.bytes("associated_data", parameters.associatedData)
        case .bcrypt: json.text("algorithm", "bcrypt")
        case .firebaseScrypt(let parameters):
            json.text("algorithm", "firebase-scrypt")
            json.bytes("signer_key", parameters.signerKey.withBytes { [UInt8]($0) })
            json.bytes("salt_separator", parameters.saltSeparator)
            json.integer("rounds", Int64(parameters.rounds))
            json.integer("mem_cost", Int64(parameters.memoryCost))
        case .digest(let parameters):
            json.text("algorithm", "digest")
            json.text("function", parameters.function.fileName)
            json.integer("rounds", Int64(parameters.rounds))
            json.text("order", parameters.order.fileName)
            json.bool("rounds_over_hex", parameters.roundsOverHex)
        case .hmac(let parameters):
            json.text("algorithm", "hmac")
            json.text("function", parameters.function.fileName)
            json.bytes("signer_key", parameters.signerKey.withBytes { [UInt8]($0) })
            json.text("order", parameters.order.fileName)
        case .pbkdf2(let parameters):
            json.text("algorithm", "pbkdf2")
            json.text("function", parameters.function.fileName)
            json.integer("rounds", Int64(parameters.rounds))
        case .scrypt(let parameters):
            json.text("algorithm", "scrypt")
            json.integer("mem_cost", Int64(parameters.memoryCost))
            json.integer("block_size", Int64(parameters.blockSize))
            json.integer("parallelization", Int64(parameters.parallelization))
        case nil: break
        }
        return line(json.value)
    }

    static func line(_ user: ImportUser) -> [UInt8] {
        var json = ObjectBuilder()
        json.text("uid", user.uid)
        json.text("email", user.email)
        json.bool("email_verified", user.emailVerified)
        json.text("display_name", user.displayName)
        json.text("photo_url", user.photoURL)
        json.text("phone_number", user.phoneNumber)
        json.bool("disabled", user.disabled)
        json.text("custom_claims_json", Text(unchecked: user.customClaimsJSON))
        json.integer("created_at_micros", user.createdAtMicros)
        json.integer("last_sign_in_at_micros", user.lastSignInAtMicros)
        json.bytes("password_hash", user.passwordHash.withBytes { [UInt8]($0) })
        json.bytes("salt", user.salt)
        json.text("hash_spec", user.hashSpec)
        json.bool("email_link_sign_in", user.emailLinkSignIn)
        json.integer("password_updated_at_micros", user.passwordUpdatedAtMicros)
        json.objects("providers", user.providers.map(object))
        json.objects("second_factors", user.secondFactors.map(object))
        json.bool("custom_token_sign_in", user.customTokenSignIn)
        json.bool("email_typed_by_user", user.emailTypedByUser)
        return line(json.value)
    }

    private static func object(_ provider: ProviderInfo) -> JSONValue {
        var json = ObjectBuilder()
        json.text("provider_id", provider.providerID)
        json.text("raw_id", provider.rawID)
        json.text("email", provider.email)
        json.text("display_name", provider.displayName)
        json.text("photo_url", provider.photoURL)
        json.text("phone_number", provider.phoneNumber)
        json.text("issuer", provider.issuer)
        return json.value
    }

    private static func object(_ imported: ImportSecondFactor) -> JSONValue {
        let factor = imported.factor ?? SecondFactor()
        var json = ObjectBuilder()
        json.text("factor_id", factor.factorID)
        json.text("kind", factor.kind == .totp ? "totp" : "phone")
        json.text("display_name", factor.displayName)
        json.text("phone_number", factor.phoneNumber)
        json.integer("enrolled_at_micros", factor.enrolledAtMicros)
        json.bytes("totp_secret", imported.totpSecret.withBytes { [UInt8]($0) })
        return json.value
    }

    private static func line(_ json: JSONValue) -> [UInt8] { json.serialized() + [0x0A] }
}

/// An object without empty fields.
private struct ObjectBuilder {
    private var members: [JSONValue.Member] = []

    var value: JSONValue { .object(members) }

    mutating func text(_ name: Text, _ text: Text) {
        if !text.isEmpty { members.append(.init(name, .string(text))) }
    }

    mutating func bool(_ name: Text, _ value: Bool) { if value { members.append(.init(name, .bool(true))) } }

    mutating func integer(_ name: Text, _ value: Int64) {
        if value != 0 { members.append(.init(name, .integer(value))) }
    }

    mutating func bytes(_ name: Text, _ bytes: [UInt8]) { text(name, Text(unchecked: Base64.standard.encode(bytes))) }

    mutating func objects(_ name: Text, _ objects: [JSONValue]) {
        if !objects.isEmpty { members.append(.init(name, .array(objects))) }
    }
}

extension PasswordHashFunction {
    var fileName: Text { Text(HashAlgorithm.functions.first { $0.function == self }?.name ?? "") }
}

extension PasswordHashOrder {
    var fileName: Text { Text(HashAlgorithm.orders.first { $0.1 == self }?.0 ?? "") }
}

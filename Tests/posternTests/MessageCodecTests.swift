import Base
import JSON
import Messages
import Testing

@testable import postern

/// JSON to messages and back by the schema, compared with what the generated types make of the same bytes.
@Suite struct MessageCodecTests {
    private static let encoder = MessageEncoder(schema: .shared)
    private static let decoder = MessageDecoder(schema: .shared)

    private static func encode(_ json: String, as type: Text) throws -> [UInt8] {
        try encoder.encode(JSONValue(parsing: [UInt8](json.utf8)), as: type)
    }

    @Test func `A request in JSON is the request that the generated type reads`() throws {
        let json = #"""
            {"tenant_id":"acme","spec":{"hmac":{"function":"PASSWORD_HASH_FUNCTION_SHA256","signer_key":"0708"}},
             "on_conflict":"IMPORT_CONFLICT_SKIP","validate_only":true,
             "users":[{"uid":"u1","disabled":true,"created_at_micros":1800000000000000,
                       "custom_claims_json":{"role":"editor"},"providers":[{"provider_id":"google.com"}]}]}
            """#
        let request = try UsersImportRequest(decoding: Self.encode(json, as: "postern.v1.UsersImportRequest"))
        var user = ImportUser(uid: "u1", disabled: true, createdAtMicros: 1_800_000_000_000_000)
        user.customClaimsJSON = [UInt8](#"{"role":"editor"}"#.utf8)
        user.providers = [ProviderInfo(providerID: "google.com")]
        let hmac = HmacSpec(function: .sha256, signerKey: Secret([7, 8]))
        #expect(
            request
                == UsersImportRequest(
                    tenantID: "acme", spec: PasswordHashSpec(algorithm: .hmac(hmac)), onConflict: .skip, users: [user],
                    validateOnly: true))
    }

    @Test func `An answer's JSON is that of the other commands`() throws {
        var user = User(tenantID: "acme", uid: "u1", email: "ann@example.com", createdAtMicros: 5)
        user.customClaimsJSON = [UInt8](#"{"role":"x"}"#.utf8)
        user.providers = [ProviderInfo(providerID: "password", rawID: "ann@example.com")]
        user.secondFactors = [SecondFactor(factorID: "f", kind: .phone)]
        let response = UsersGetResponse(user: user)
        let json = try Self.decoder.decode(response.encoded(), as: "postern.v1.UsersGetResponse")
        #expect(json["user"] == user.json)
        let empty = try Self.decoder.decode([], as: "postern.v1.UsersGetResponse")
        #expect(empty == ["user": .null])
    }

    /// An empty message of every type, read and written again.
    @Test func `Every message of the protocol can be read and written`() throws {
        let types = ProtocolSchema.shared.messages.keys.filter { $0.string.hasPrefix("postern.v1.") }
        #expect(types.count > 150 && ProtocolSchema.shared.methods.count > 100)
        for type in types {
            let json = try Self.decoder.decode([], as: type)
            #expect(try Self.decoder.decode(Self.encoder.encode(json, as: type), as: type) == json, "\(type)")
        }
    }

    @Test(
        arguments: [
            ("[]", "the request must be an object"), (#"{"uidd":""}"#, "postern.v1.UsersGetRequest has no field uidd"),
            (#"{"uid":1}"#, "uid must be a string"),
            (#"{"include_last_refresh":"yes"}"#, "include_last_refresh must be true or false"),
        ])
    func `What the message has no place for is refused`(json: String, message: String) {
        let error = #expect(throws: CommandError.self) { try Self.encode(json, as: "postern.v1.UsersGetRequest") }
        #expect(error?.message == message && error?.exitCode == .usage)
    }

    @Test(
        arguments: [
            (#"{"salt":"xy"}"#, "salt must be bytes as hexadecimal digits"),
            (#"{"created_at_micros":1.5}"#, "created_at_micros must be a whole number"),
            (#"{"providers":{}}"#, "providers must be an array"),
            (#"{"providers":[1]}"#, "providers must be an object"),
            (#"{"second_factors":[{"factor":{"kind":"x"}}]}"#, "second_factors.factor.kind must be one of"),
        ])
    func `A value that does not fit is refused with its place`(json: String, message: String) {
        let error = #expect(throws: CommandError.self) { try Self.encode(json, as: "postern.v1.ImportUser") }
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
    }

    @Test func `Members of a oneof exclude each other`() {
        let json = #"{"disabled":true,"email_verified":true}"#
        #expect(throws: Never.self) { try Self.encode(json, as: "postern.v1.UsersQueryRequest") }
        let both = #"{"bcrypt":{},"argon2id":{}}"#
        #expect(throws: CommandError.self) { try Self.encode(both, as: "postern.v1.PasswordHashSpec") }
    }

    @Test(arguments: [[0x0A], [0x0A, 0xFF], [0x0A, 0x05, 0x01], [0xFF, 0xFF, 0xFF], [0x0B]] as [[UInt8]])
    func `Bytes that are no message are an error`(bytes: [UInt8]) {
        #expect(throws: CommandError.self) { try Self.decoder.decode(bytes, as: "postern.v1.UsersGetResponse") }
    }

    @Test func `A method is found by its short name, and a misspelt one is told`() throws {
        let schema = ProtocolSchema.shared
        for name in ["Users/Get", "Users.Get", "postern.v1.Users/Get"] {
            #expect(try schema.method(name).request == "postern.v1.UsersGetRequest")
        }
        #expect(try schema.method("Users/Import").isClientStreaming)
        let error = #expect(throws: CommandError.self) { try schema.method("Users/Gett") }
        #expect(error?.hint == "did you mean postern.v1.Users/Get?" && error?.exitCode == .notFound)
    }
}

import Base
import Crypto
import JSON
import Messages
import TestSupport
import Testing

/// Every way a custom token can be wrong, and the limits within which it is right.
@Suite struct CustomTokenFormTests {
    private struct Row {
        let name: String
        let token: Text
        let reason: String
        /// The cause of INVALID_CUSTOM_TOKEN.
        var cause: String?

        init(_ name: String, _ token: Text, _ reason: String, _ cause: String? = nil) {
            self.name = name
            self.token = token
            self.reason = reason
            self.cause = cause
        }
    }

    private func refuse(_ rows: [Row], _ backEnd: BackEnd) throws {
        for row in rows {
            let failure = backEnd.refusal(row.token)
            #expect(failure.reason == row.reason, "\(row.name)")
            #expect(failure.metadata("cause") == row.cause, "\(row.name)")
        }
        let users: UsersListResponse = try backEnd.client.call("postern.v1.Users/List", UsersListRequest())
        #expect(users.users.isEmpty)
    }

    private func malformed(_ name: String, _ token: Text) -> Row {
        Row(name, token, "INVALID_CUSTOM_TOKEN", "MALFORMED")
    }
    private func forged(_ name: String, _ token: Text) -> Row {
        Row(name, token, "INVALID_CUSTOM_TOKEN", "NOT_AUTHENTIC")
    }

    @Test func whatIsNoJWTIsRefused() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let good = backEnd.token().string
            let parts = good.split(separator: ".").map(String.init)
            let header = String(decoding: backEnd.header.serialized(), as: UTF8.self)
            let payload = String(decoding: backEnd.claims.serialized(), as: UTF8.self)
            func token(_ header: String, _ payload: String) -> Text {
                backEnd.token(header: [UInt8](header.utf8), [UInt8](payload.utf8))
            }
            let members = payload.dropFirst().dropLast()
            try refuse(
                [
                    Row("empty", "", "MISSING_CUSTOM_TOKEN"),
                    malformed("a word", "token"), malformed("dots", "..."),
                    malformed("the emulator's unsigned JSON", Text(payload)),
                    malformed("two parts", Text(parts[0] + "." + parts[1])),
                    malformed("four parts", Text(good + ".x")), malformed("a space", Text(" " + good)),
                    malformed("padding", Text(good + "=")), malformed("a line feed", Text(good + "\n")),
                    malformed(
                        "too long", token(header, "{\(members),\"x\":\"\(String(repeating: "x", count: 8_192))\"}")),
                    malformed("crit", backEnd.token(header: backEnd.header.with("crit", ["exp"]))),
                    malformed("b64", backEnd.token(header: backEnd.header.with("b64", false))),
                    malformed("no alg", backEnd.token(header: backEnd.header.with("alg", nil))),
                    malformed("alg twice", token("{\"alg\":\"none\",\(header.dropFirst())", payload)),
                    malformed("a number as kid", backEnd.token(header: backEnd.header.with("kid", 1))),
                    malformed("a caller's type", backEnd.token(header: backEnd.callerHeader)),
                    malformed("another type", backEnd.token(header: backEnd.header.with("typ", "at+jwt"))),
                    malformed("uid twice", token(header, "{\"uid\":\"admin\",\(members)}")),
                    malformed("uid twice, once escaped", token(header, "{\(members),\"\\u0075id\":\"admin\"}")),
                    malformed("exp twice", token(header, "{\(members),\"exp\":9999999999}")),
                    malformed("a list", token(header, "[\(payload)]")),
                    malformed("two values", token(header, payload + "{}")),
                    malformed("nested without end", token(header, String(repeating: "[", count: 4_000))),
                    malformed("NUL", token(header, "{\(members),\"x\":\"\\u0000\"}")),
                ], backEnd)
        }
    }

    @Test func whatTheAccountsKeyDidNotSignIsRefused() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let other = try BackEnd(server, id: "other")
            let mute = try BackEnd(server, id: "mute", customTokens: false)
            let stranger = newKeyPair()
            let good = backEnd.token()
            let parts = good.string.split(separator: ".").map(String.init)
            let otherPayload = Base64.url.encodeToString(backEnd.claims.with("uid", "admin").serialized())
            let confused = Self.signedWithPublicKey(backEnd)
            let embedded: JSONValue = .object(
                stranger.publicKey.jwk.members.map { JSONValue.Member(Text("\($0.name)"), .string($0.value)) })
            let unnamed = backEnd.header.with("kid", nil)
            let byName: (Text?) -> Text = { name in
                backEnd.token(
                    backEnd.claims.with("iss", name.map { .string($0) }).with("sub", name.map { .string($0) }))
            }
            try refuse(
                [
                    forged("alg none", Text(backEnd.token(header: backEnd.header.with("alg", "none")).string)),
                    forged("alg none, unsigned", Text(parts[0] + "." + parts[1] + ".")),
                    forged("HS256 with the DER key", Text(confused[0])),
                    forged("HS256 with the PEM key", Text(confused[1])),
                    forged("RS256 said, ES256 signed", backEnd.token(header: backEnd.header.with("alg", "RS256"))),
                    forged("es256 in small letters", backEnd.token(header: backEnd.header.with("alg", "es256"))),
                    forged("another payload", Text(parts[0] + "." + otherPayload + "." + parts[2])),
                    forged("no signature", Text(parts[0] + "." + parts[1] + ".")),
                    forged("half a signature", Text(parts[0] + "." + parts[1] + "." + parts[2].prefix(40))),
                    forged("r = s = 0", Text(parts[0] + "." + parts[1] + "." + String(repeating: "A", count: 86))),
                    forged("an unknown key", backEnd.token(signedBy: stranger)),
                    forged("an unknown key, unnamed", backEnd.token(header: unnamed, signedBy: stranger)),
                    forged(
                        "a key it brings along",
                        backEnd.token(header: unnamed.with("jwk", embedded), signedBy: stranger)),
                    forged("an unknown kid", backEnd.token(header: backEnd.header.with("kid", "x"))),
                    forged("a kid that is a path", backEnd.token(header: backEnd.header.with("kid", "../../dev/null"))),
                    forged("another account's key", backEnd.token(signedBy: other.key)),
                    forged(
                        "another account's key and kid",
                        backEnd.token(header: other.header, signedBy: other.key)),
                    forged("another account's key, unnamed", backEnd.token(header: unnamed, signedBy: other.key)),
                    forged("the built-in account's name", byName("postern@test.postern.local")),
                    forged("an account that may not", mute.token()),
                    // An account that may not sign is told nothing of what it signed.
                    forged("an account that may not, of another project", mute.token(mute.claims.with("aud", "x"))),
                    forged("an account there is not", byName("nobody@test.postern.local")),
                    forged("another project's account", byName("backend@prod.postern.local")),
                    forged("only the id", byName("backend")), forged("capitals", byName("BACKEND@test.postern.local")),
                    forged("a short id", byName("@")),
                    forged("a name beyond any key", byName(Text(String(repeating: "a", count: 2_000)))),
                    malformed("no name", byName(nil)), malformed("an empty name", byName("")),
                    malformed(
                        "sub is another's",
                        backEnd.token(backEnd.claims.with("sub", .string(other.account.email)))),
                ], backEnd)
            _ = try backEnd.signIn(good)
        }
    }

    /// The classic confusion: the public key, which everybody knows, as an HMAC secret; in DER and in PEM.
    private static func signedWithPublicKey(_ backEnd: BackEnd) -> [String] {
        let parts = [backEnd.header.with("alg", "HS256"), backEnd.claims].map { $0.serialized() }
        let signed = parts.map { Base64.url.encodeToString($0) }.joined(separator: ".")
        return [backEnd.key.publicKey.exportSPKI(), spkiPEM(backEnd.key)].map { secret in
            signed + "." + Base64.url.encodeToString(HMACKey(Secret(secret)).tag(of: [UInt8](signed.utf8)))
        }
    }

    @Test func whatItSaysIsHeldToTheRules() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let claims = backEnd.claims
            let now = backEnd.now
            func row(_ name: String, _ claim: Text, _ value: JSONValue?, _ reason: String, _ cause: String? = nil)
                -> Row
            {
                Row(name, backEnd.token(claims.with(claim, value)), reason, cause)
            }
            func times(_ name: String, _ iat: JSONValue?, _ exp: JSONValue?, _ cause: String) -> Row {
                Row(name, backEnd.token(claims.with("iat", iat).with("exp", exp)), "INVALID_CUSTOM_TOKEN", cause)
            }
            let at: (Int64) -> JSONValue = { .integer(now + $0) }
            var rows = [
                times("expired", at(-3_600), at(0), "EXPIRED"),
                times("long expired", at(-9_000), at(-8_000), "EXPIRED"),
                times("above an hour", at(0), at(3_601), "TIMES"), times("from the future", at(61), at(600), "TIMES"),
                times("backwards", at(10), at(5), "TIMES"), times("for ever", at(0), .integer(.max), "TIMES"),
                times("from the beginning", .integer(.min), at(10), "TIMES"), times("no iat", nil, at(10), "MALFORMED"),
                times("no exp", at(0), nil, "MALFORMED"), times("exp is text", at(0), "never", "MALFORMED"),
                times("exp is null", at(0), .null, "MALFORMED"),
                times("exp is a fraction", at(0), .double(1_800_000_010.5), "MALFORMED"),
                row("not yet", "nbf", at(61), "INVALID_CUSTOM_TOKEN", "TIMES"),
                row("no audience", "aud", nil, "INVALID_CUSTOM_TOKEN", "MALFORMED"),
                row("two audiences", "aud", [claims["aud"] ?? .null, "x"], "INVALID_CUSTOM_TOKEN", "MALFORMED"),
                row("the project", "aud", "test", "CREDENTIAL_MISMATCH"),
                row("callers", "aud", "https://issuer.test/test/caller", "CREDENTIAL_MISMATCH"),
                row("another project", "aud", "https://issuer.test/prod/custom-token", "CREDENTIAL_MISMATCH"),
                row("a tenant that is a number", "tenant_id", 1, "INVALID_CUSTOM_TOKEN", "MALFORMED"),
                row("another tenant", "tenant_id", "acme", "TENANT_ID_MISMATCH"),
                row("no uid", "uid", nil, "MISSING_IDENTIFIER"), row("empty uid", "uid", "", "MISSING_IDENTIFIER"),
                row("uid is null", "uid", .null, "MISSING_IDENTIFIER"), row("uid is 1", "uid", 1, "MISSING_IDENTIFIER"),
                row("uid of 129 bytes", "uid", .string(Text(String(repeating: "u", count: 129))), "INVALID_UID"),
                row("jti is 1", "jti", 1, "INVALID_CUSTOM_TOKEN", "MALFORMED"),
                row("empty jti", "jti", "", "INVALID_CUSTOM_TOKEN", "MALFORMED"),
                row("claims are null", "claims", .null, "INVALID_CLAIMS"),
                row("claims are a list", "claims", [], "INVALID_CLAIMS"),
                row("claims are text", "claims", "{}", "INVALID_CLAIMS"),
                row("claims 6 deep", "claims", ["a": ["b": ["c": ["d": ["e": [:]]]]]], "INVALID_CLAIMS"),
                row(
                    "claims of 1,001 bytes", "claims", ["x": .string(Text(String(repeating: "x", count: 993)))],
                    "CLAIMS_TOO_LARGE"),
            ]
            for name in [
                "iss", "aud", "sub", "iat", "exp", "nbf", "jti", "nonce", "azp", "acr", "amr", "cnf", "auth_time",
                "firebase", "at_hash", "c_hash", "sid", "gen",
            ] {
                let member = JSONValue.object([JSONValue.Member(Text(name), "x")])
                rows.append(row("claim \(name)", "claims", member, "FORBIDDEN_CLAIM"))
            }
            try refuse(rows, backEnd)
        }
    }

    @Test func whatIsJustWithinTheRulesSignsIn() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let claims = backEnd.claims
            let now = backEnd.now
            let longest = Text(String(repeating: "u", count: 128))
            let rows: [(String, Text)] = [
                ("no kid", backEnd.token(header: backEnd.header.with("kid", nil))),
                ("no typ", backEnd.token(header: backEnd.header.with("typ", nil))),
                ("our audience", backEnd.token(claims.with("aud", "https://issuer.test/test/custom-token"))),
                (
                    "a second left",
                    backEnd.token(claims.with("iat", .integer(now - 3_599)).with("exp", .integer(now + 1)))
                ),
                ("a minute ahead", backEnd.token(claims.with("iat", .integer(now + 60)))),
                ("nbf", backEnd.token(claims.with("nbf", .integer(now + 60)))),
                ("the longest uid", backEnd.token(claims.with("uid", .string(longest)))),
                ("uid of old SDKs", backEnd.token(claims.with("uid", nil).with("user_id", "u1"))),
                ("no claims in it", backEnd.token(claims.with("claims", [:]))),
                (
                    "claims of 1,000 bytes",
                    backEnd.token(claims.with("claims", ["x": .string(Text(String(repeating: "x", count: 992)))]))
                ),
                ("claims 5 deep", backEnd.token(claims.with("claims", ["a": ["b": ["c": ["d": [:]]]]]))),
                ("other members", backEnd.token(header: backEnd.header.with("x5t", "y"), claims.with("other", [1]))),
            ]
            for (name, token) in rows {
                let failure = backEnd.refusal(token)
                #expect(failure.reason == "", "\(name): \(failure.message)")
            }
        }
    }

    /// Without a `kid` each of the account's keys is tried.
    @Test func anyOfTheAccountsKeysMaySignUnnamed() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            for _ in 0..<9 {
                let pair = newKeyPair()
                let _: ProjectUploadServiceAccountKeyResponse = try backEnd.client.call(
                    "postern.v1.Project/UploadServiceAccountKey",
                    ProjectUploadServiceAccountKeyRequest(serviceAccountID: "backend", publicKey: spkiPEM(pair)))
                _ = try backEnd.signIn(backEnd.token(header: backEnd.header.with("kid", nil), signedBy: pair))
            }
        }
    }
}

/// The public part of a key, as openssl prints it.
func spkiPEM(_ key: SigningKey) -> [UInt8] {
    PEM.encode("PUBLIC KEY", Secret(key.publicKey.exportSPKI())).withBytes { [UInt8]($0) }
}

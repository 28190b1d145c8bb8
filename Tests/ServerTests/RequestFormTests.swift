import Base
import Identity
import Messages
import TestSupport
import Testing
import Wire

/// How requests may be written, and what is said about those that name two things at once.
@Suite struct RequestFormTests {
    @Test(arguments: [
        ("Bearer ", true), ("bearer ", true), ("BEARER ", true), ("bEaReR ", true),
        // One space, as RFC 9110 §11.4 says; nothing that only looks like the scheme.
        ("Bearer  ", false), ("Bearer\t", false), ("Bearer", false), (" Bearer ", false), ("Beare\u{12} ", false),
        ("Basic ", false), ("", false),
    ])
    func `The scheme of the credential is written in any case`(_ scheme: String, isTaken: Bool) async throws {
        // HTTP/2 does not carry these at all (RFC 9113, 8.2.1).
        guard !RawClient.callsByGRPC || ![" Bearer ", "Beare\u{12} "].contains(scheme) else { return }
        try await withServer { server in
            let client = try server.connect(authenticated: false)
            let value = server.adminKey.withBytes { Text(unchecked: [UInt8](scheme.utf8) + [UInt8]($0)) }
            let reason = failure {
                let _: ProjectStatsResponse = try client.call(
                    "postern.v1.Project/Stats", ProjectStatsRequest(),
                    metadata: [OutgoingMetadata.Entry(key: "authorization", value: value)])
            }.reason
            #expect(reason == (isTaken ? "" : "CALLER_UNAUTHENTICATED"))
        }
    }

    @Test func `With any tenant the tenant id is ignored`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try #require(try client.signUp("ada@example.com").tokens)
            let cookie: TokensCreateSessionCookieResponse = try client.client.call(
                "postern.v1.Tokens/CreateSessionCookie", TokensCreateSessionCookieRequest(idToken: tokens.idToken))
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "shut"))
            try Self.shut("shut", client)
            for tenantID in ["nowhere", "shut", "???"] as [Text] {
                let verified: TokensVerifyIdTokenResponse = try client.client.call(
                    "postern.v1.Tokens/VerifyIdToken",
                    TokensVerifyIdTokenRequest(tenantID: tenantID, idToken: tokens.idToken, anyTenant: true))
                #expect(verified.tenantID == "")
                let looked: TokensVerifySessionCookieResponse = try client.client.call(
                    "postern.v1.Tokens/VerifySessionCookie",
                    TokensVerifySessionCookieRequest(
                        tenantID: tenantID, sessionCookie: cookie.sessionCookie, anyTenant: true))
                #expect(looked.tenantID == "")
                let stream = try RawStream<TokensWatchRevocationsResponse>(
                    server, "postern.v1.Tokens/WatchRevocations",
                    TokensWatchRevocationsRequest(tenantID: tenantID, anyTenant: true))
                #expect(try stream.next()?.scope?.tenants == .all(true))
            }
            // The tenant that counts is the token's own.
            try Self.shut("", client)
            expectRefusal("PROJECT_DISABLED") {
                let _: TokensVerifyIdTokenResponse = try client.client.call(
                    "postern.v1.Tokens/VerifyIdToken",
                    TokensVerifyIdTokenRequest(tenantID: "shut", idToken: tokens.idToken, anyTenant: true))
            }
        }
    }

    @Test func `A default pool that is shut does not shut other tenants`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let made: AccountsSignUpResponse = try client.client.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(tenantID: "acme", email: "ada@example.com", password: Secret("correct horse")))
            try Self.shut("", client)
            let verified: TokensVerifyIdTokenResponse = try client.client.call(
                "postern.v1.Tokens/VerifyIdToken",
                TokensVerifyIdTokenRequest(idToken: try #require(made.tokens).idToken, anyTenant: true))
            #expect(verified.tenantID == "acme")
        }
    }

    private static func shut(_ tenantID: Text, _ client: IdentityClient) throws {
        let _: TenantsUpdateResponse = try client.client.call(
            "postern.v1.Tenants/Update",
            TenantsUpdateRequest(
                tenantID: tenantID, tenant: Messages.Tenant(disableAuth: true),
                updateMask: ProtobufFieldMask(paths: ["disable_auth"])))
    }

    @Test(arguments: [("acme", "other"), ("", "acme"), ("other", "acme")])
    func `An update that names two tenants changes neither`(_ outer: String, _ inner: String) async throws {
        try await withServer { server in
            let client = try server.connect()
            for id in ["acme", "other"] as [Text] {
                let _: TenantsCreateResponse = try client.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: id))
            }
            for isTrial in [true, false] {
                expectRefusal("TENANT_ID_MISMATCH") {
                    let _: TenantsUpdateResponse = try client.call(
                        "postern.v1.Tenants/Update",
                        TenantsUpdateRequest(
                            tenantID: Text(outer),
                            tenant: Messages.Tenant(tenantID: Text(inner), displayName: "changed"),
                            updateMask: ProtobufFieldMask(paths: ["display_name"]), validateOnly: isTrial))
                }
            }
            for id in ["", "acme", "other"] as [Text] {
                let found: TenantsGetResponse = try client.call(
                    "postern.v1.Tenants/Get", TenantsGetRequest(tenantID: id))
                #expect(found.tenant?.displayName != "changed")
            }
        }
    }

    @Test func `An admin is told that an email is not found`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for type in [OobRequestType.verifyEmail, .passwordReset, .verifyAndChangeEmail] {
                let refused = failure {
                    let _: UsersGenerateOobLinkResponse = try client.call(
                        "postern.v1.Users/GenerateOobLink",
                        UsersGenerateOobLinkRequest(requestType: type, email: "nobody@example.com"))
                }
                #expect(refused.code == .notFound && refused.reason == "EMAIL_NOT_FOUND")
            }
        }
    }

    @Test func `An admin is given no sign-in link where nobody could use it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            func makeLink() throws {
                let _: UsersGenerateOobLinkResponse = try client.client.call(
                    "postern.v1.Users/GenerateOobLink",
                    UsersGenerateOobLinkRequest(requestType: .emailSignin, email: "ada@example.com"))
            }
            expectRefusal("OPERATION_NOT_ALLOWED") { try makeLink() }
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            try makeLink()
        }
    }

    @Test func `A phone number is no way in by email`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy"]) { _ in }
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create",
                UsersCreateRequest(
                    email: "ada@example.com", password: Secret("correct horse"), phoneNumber: "+15550100123"))
            let found: AccountsCreateAuthUriResponse = try client.client.call(
                "postern.v1.Accounts/CreateAuthUri", AccountsCreateAuthUriRequest(identifier: "ada@example.com"))
            #expect(found.registered && found.signInMethods == ["password"])
        }
    }
}

import Base
import Crypto
import JSON
import Messages
import Synchronization
import TestSupport
import Testing
import Wire

/// Service accounts as callers: `authorization: Bearer <JWT signed by themselves>`.
@Suite struct CallerJWTTests {
    private func reason(_ client: RawClient) -> String {
        failure { let _: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest()) }.reason
    }

    @Test(arguments: ["ES256", "RS256"] as [Text])
    func anAccountCallsWithinItsRoleAndScope(algorithm: Text) async throws {
        try await withServer { server in
            let admin = try BackEnd(server, id: "root", role: .projectAdmin)
            try admin.makeTenant("acme")
            try admin.makeTenant("other")
            let acme = try BackEnd(
                server, id: "acme-admin", role: .tenantAdmin, scope: Scope(tenants: .tenantID("acme")),
                algorithm: algorithm)
            let client = try acme.connect()
            // The request goes to the account's own tenant without naming it.
            let made: UsersCreateResponse = try client.call("postern.v1.Users/Create", UsersCreateRequest(uid: "u1"))
            #expect(made.user?.tenantID == "acme")
            let elsewhere = failure {
                let _: UsersListResponse = try client.call(
                    "postern.v1.Users/List", UsersListRequest(tenantID: "other"))
            }
            #expect(elsewhere.reason == "INSUFFICIENT_PERMISSION")
            let above = failure {
                let _: TenantsListResponse = try client.call("postern.v1.Tenants/List", TenantsListRequest())
            }
            #expect(above.reason == "INSUFFICIENT_PERMISSION")
            let root = try admin.connect()
            let tenants: TenantsListResponse = try root.call("postern.v1.Tenants/List", TenantsListRequest())
            #expect(tenants.tenants.count == 3)
        }
    }

    @Test func whatIsNoCallerJWTOfALiveAccountIsNobody() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .tenantAdmin)
            let other = try BackEnd(server, id: "other", role: .tenantAdmin)
            let header = backEnd.callerHeader
            let claims = backEnd.callerClaims
            let now = backEnd.now
            let at: (Int64) -> JSONValue = { .integer(now + $0) }
            let rows: [(String, Text)] = [
                ("a word", "jwt"), ("empty", ""), ("an API key's look", "pk_a.b.c"),
                ("no type", backEnd.callerToken(header: header.with("typ", nil))),
                ("a custom token's type", backEnd.callerToken(header: backEnd.header)),
                ("a custom token", backEnd.token()),
                ("a custom token of the caller's type", backEnd.token(header: header)),
                ("no kid", backEnd.callerToken(header: header.with("kid", nil))),
                ("another's kid", backEnd.callerToken(header: other.callerHeader)),
                ("alg none", backEnd.callerToken(header: header.with("alg", "none"))),
                ("signed by another", backEnd.token(header: header, claims, signedBy: other.key)),
                ("another's name", backEnd.callerToken(claims.with("iss", .string(other.account.email)))),
                ("the project as audience", backEnd.callerToken(claims.with("aud", "test"))),
                ("two audiences", backEnd.callerToken(claims.with("aud", [claims["aud"] ?? .null]))),
                ("expired", backEnd.callerToken(claims.with("iat", at(-60)).with("exp", at(0)))),
                ("above an hour", backEnd.callerToken(claims.with("exp", at(3_601)))),
                ("from the future", backEnd.callerToken(claims.with("iat", at(61)))),
            ]
            // HTTP/2 takes no header that ends in a space.
            for (name, token) in rows where !(RawClient.callsByGRPC && name == "empty") {
                #expect(reason(try backEnd.connect(token)) == "CALLER_UNAUTHENTICATED", "\(name)")
            }
            #expect(reason(try backEnd.connect()) == "")
            let mute = try BackEnd(server, id: "mute", role: .unspecified)
            #expect(reason(try mute.connect()) == "CALLER_UNAUTHENTICATED")
        }
    }

    /// The `cause` of a refused call; nil if it has none.
    private func cause(_ refusal: Failure) -> String? { refusal.metadata.first { $0.key == "cause" }?.value }

    @Test func `A refusal says what is wrong with a JWT's form, also in the log`() async throws {
        let said = Mutex<[String]>([])
        let log = Log(level: .info) { line in said.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
        try await withServer(log: log) { server in
            let backEnd = try BackEnd(server, role: .tenantAdmin)
            let other = try BackEnd(server, id: "other", role: .tenantAdmin)
            let mute = try BackEnd(server, id: "mute", role: .unspecified)
            let (header, claims, now) = (backEnd.callerHeader, backEnd.callerClaims, backEnd.now)
            let expired = claims.with("iat", .integer(now - 60)).with("exp", .integer(now))
            let rows: [(Text, String?)] = [
                ("jwt", "MALFORMED"), (backEnd.callerToken(claims.with("iss", "x")), "MALFORMED"),
                (backEnd.callerToken(header: backEnd.header), "TYPE"),
                (backEnd.callerToken(header: header.with("kid", nil)), "KEY_ID"),
                (backEnd.callerToken(claims.with("aud", "https://issuer.test/test")), "AUDIENCE"),
                (backEnd.callerToken(expired), "EXPIRED"),
                (backEnd.callerToken(claims.with("exp", .integer(now + 3_601))), "TIMES"),
                (backEnd.token(header: header, claims, signedBy: other.key), "NOT_AUTHENTIC"),
                (backEnd.callerToken(header: other.callerHeader), "NOT_AUTHENTIC"),
                (mute.callerToken(), "NOT_AUTHENTIC"), ("pk_abcdefghijkl_wrong", nil),
            ]
            for (token, cause) in rows {
                let client = try backEnd.connect(token)
                let refusal = failure {
                    let _: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest())
                }
                #expect(refusal.reason == "CALLER_UNAUTHENTICATED")
                #expect(self.cause(refusal) == cause, "\(token)")
            }
            let client = try server.connect(authenticated: false)
            let bare = failure {
                let _: UsersListResponse = try client.call(
                    "postern.v1.Users/List", UsersListRequest(),
                    metadata: [.init(key: "authorization", value: backEnd.callerToken())])
            }
            #expect(cause(bare) == "SCHEME")
        }
        let lines = said.withLock { $0.filter { $0.contains("CALLER_UNAUTHENTICATED") } }
        let causes = ["MALFORMED", "TYPE", "KEY_ID", "AUDIENCE", "EXPIRED", "TIMES", "NOT_AUTHENTIC", "SCHEME"]
        let counts = causes.map { cause in lines.filter { $0.contains(#""cause":"\#(cause)""#) }.count }
        #expect(counts == [2, 1, 1, 1, 1, 1, 3, 1] && lines.count == 12, "\(lines)")
    }

    @Test func aConnectionKnowsItsCallerUntilTheTokenExpires() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .tenantAdmin)
            let client = try backEnd.connect(
                backEnd.callerToken(backEnd.callerClaims.with("exp", .integer(backEnd.now + 30))))
            #expect(reason(client) == "" && reason(client) == "")
            server.clock.advance(by: .seconds(29))
            #expect(reason(client) == "")
            server.clock.advance(by: .seconds(1))
            #expect(reason(client) == "CALLER_UNAUTHENTICATED")
            client.apiKey = Secret(backEnd.callerToken().bytes)
            #expect(reason(client) == "")
        }
    }

    @Test func aKeysEndIsItsCallersEnd() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .tenantAdmin, keyLifetimeSeconds: 30)
            let client = try backEnd.connect()
            #expect(reason(client) == "")
            server.clock.advance(by: .seconds(30))
            #expect(reason(client) == "CALLER_UNAUTHENTICATED")
        }
    }

    enum End: CaseIterable { case keyRevoked, disabled, deleted, roleTakenAway, roleLowered, scopeNarrowed }

    @Test(arguments: End.allCases) func whatEndsACallerBindsItsNextRequestOnAnOpenConnection(_ end: End) async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .tenantAdmin)
            try backEnd.makeTenant("acme")
            let clients = try (0..<3).map { _ in try backEnd.connect() }
            for client in clients { #expect(reason(client) == "") }
            switch end {
            case .keyRevoked: try backEnd.revokeKey()
            case .disabled: try backEnd.update(["disabled"]) { $0.disabled = true }
            case .deleted: try backEnd.delete()
            case .roleTakenAway: try backEnd.update(["role"]) { $0.role = .unspecified }
            case .roleLowered: try backEnd.update(["role"]) { $0.role = .app }
            case .scopeNarrowed: try backEnd.update(["scope"]) { $0.scope = Scope(tenants: .tenantID("acme")) }
            }
            for client in clients {
                switch end {
                case .roleLowered: #expect(reason(client) == "INSUFFICIENT_PERMISSION")
                case .scopeNarrowed:
                    let list: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest())
                    #expect(list.users.isEmpty)
                    let _: UsersCreateResponse = try client.call(
                        "postern.v1.Users/Create", UsersCreateRequest(uid: "u1"))
                    let _: UsersDeleteResponse = try client.call(
                        "postern.v1.Users/Delete", UsersDeleteRequest(tenantID: "acme", uid: "u1"))
                default: #expect(reason(client) == "CALLER_UNAUTHENTICATED")
                }
            }
        }
    }

    @Test func aHelloMayCarryTheJWT() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .tenantAdmin)
            let client = try server.connect(authenticated: false)
            let authorization = Text("Bearer \(backEnd.callerToken())")
            _ = try client.hello(WireHello(protocolVersion: 1, software: "raw", authorization: authorization))
            #expect(reason(client) == "")
            try backEnd.revokeKey()
            #expect(reason(client) == "CALLER_UNAUTHENTICATED")
        }
    }
}

import Base
import Crypto
import Identity
import Messages
import Store
import TestSupport
import Testing

/// The caller of a method chooses the continue URL, so that a mail from the tenant leads to the attacker's page.
@Suite struct ContinueURLAttackTests {
    private static let listed: [Text] = ["app.example", "app.example:8443", "*.apps.example", "com.example.app:"]

    private static let allowed: [Text] = [
        "https://app.example", "https://app.example/", "https://APP.example/x?y=z#f", "https://app.example:443/",
        "https://app.example:8443/x", "https://a.apps.example/", "https://a.b.apps.example/?q=@evil.example",
        // The action page's own host.
        "https://issuer.test/anything",
    ]

    /// URLs that some parser or reader could take for ones with a listed host.
    private static let hostile: [Text] = [
        "https://evil.example", "https://app.example.evil.example/", "https://evil.example/app.example",
        "https://evil.example?app.example", "https://evil.example#app.example", "https://evil.example/@app.example",
        "https://app.example@evil.example/", "https://app.example:443@evil.example/", "https://user@app.example/",
        "https://app.example\\@evil.example/", "https://evil.example\\@app.example", "https:\\\\evil.example",
        "https://app.example./", "https://app.example..evil.example/", "https://.app.example/",
        "https://xapp.example/", "https://app.example:444/", "https://app.example:84430/", "https://app.example:/",
        "https://app.example:443:443/", "https://apps.example/", "https://.apps.example/", "https://xapps.example/",
        "https://apps.example.evil.example/", "https://a.apps.example:8443/", "https://a_b.apps.example/",
        "https://%61pp.example/", "https://app%2Eexample/", "https://app.example%00.evil.example/",
        "https://app.example%2F@evil.example/", "https://[::1]/", "https://[::ffff:1.2.3.4]/", "https:///app.example",
        "https://", "https:app.example", "https://-app.example/", "https://app-.example/",
        "https://localhost/", "http://localhost:3000/", "http://127.0.0.1/", "http://app.example/",
        "https://127.0.0.1:443/", "http://localhost.evil.example/", "http://issuer.test/",
        "javascript:alert(1)", "data:text/html,x", "com.example.app:/back",
    ]

    @Test func aMailLeadsOnlyToListedHosts() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            try client.setTenant(["allowed_continue_domains"]) { $0.allowedContinueDomains = Self.listed }
            for url in Self.allowed { #expect(Self.reasons(client, url) == ["", ""], "\(url)") }
            for url in Self.hostile {
                let reasons = Self.reasons(client, url)
                #expect(reasons.allSatisfy { ["UNAUTHORIZED_DOMAIN", "INVALID_CONTINUE_URI"].contains($0) }, "\(url)")
            }
            let sent = try client.mails().count
            #expect(sent == Self.allowed.count)
            #expect(server.project.continueURLs.refused.value > 0)
        }
    }

    /// The reasons with which a request for a mail, and one for a link without a mail, are refused.
    private static func reasons(_ client: IdentityClient, _ url: Text) -> [String] {
        client.server.clock.advance(by: .minutes(15))
        return [
            failure { try client.sendOob(.passwordReset, email: "ada@example.com", continueURL: url) }.reason,
            failure {
                let _: UsersGenerateOobLinkResponse = try client.client.call(
                    "postern.v1.Users/GenerateOobLink",
                    UsersGenerateOobLinkRequest(
                        requestType: .passwordReset, email: "ada@example.com", continueURL: url))
            }.reason,
        ]
    }

    @Test func aNewTenantAllowsItsActionPagesHostOnly() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let made: TenantsGetResponse = try client.client.call("postern.v1.Tenants/Get", TenantsGetRequest())
            #expect(made.tenant?.continueURLRule == .listed && made.tenant?.allowedContinueDomains == [])
            #expect(Self.reasons(client, "https://issuer.test/x") == ["", ""])
            #expect(Self.reasons(client, "https://app.example/") == ["UNAUTHORIZED_DOMAIN", "UNAUTHORIZED_DOMAIN"])
            // The tenant's own action page takes the place of the server's.
            try client.configureMail(["action_url"]) { $0.actionURL = "https://login.acme.example:8443/auth" }
            #expect(Self.reasons(client, "https://login.acme.example:8443/x") == ["", ""])
            #expect(Self.reasons(client, "https://login.acme.example/x").first == "UNAUTHORIZED_DOMAIN")
            #expect(Self.reasons(client, "https://issuer.test/x").first == "UNAUTHORIZED_DOMAIN")
            // URLs on this machine are allowed only when the tenant says so.
            for allows in [false, true] {
                try client.setTenant(["allow_loopback_continue_url"]) { $0.allowLoopbackContinueURL = allows }
                for url in ["http://localhost:3000/", "http://127.0.0.1/", "https://localhost/"] as [Text] {
                    #expect(Self.reasons(client, url).first == (allows ? "" : "UNAUTHORIZED_DOMAIN"), "\(url)")
                }
            }
        }
    }

    @Test func aTenantFromBeforeKeepsWhatItHasUntilItSetsAList() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            var adminKey = Secret([])
            try await withServer(directory: directory, clock: clock, masterKey: masterKey) { server in
                adminKey = server.adminKey
                _ = try IdentityClient(server).signUp("ada@example.com")
                // The record as a version without lists wrote it.
                try await server.project.store.write { transaction in
                    var record = try transaction.get(Tables.tenants, TenantPrefix(.empty))!
                    record.tenant?.continueURLRule = .unspecified
                    try transaction.put(Tables.tenants, TenantPrefix(.empty), record)
                }
            }
            try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey) {
                server in
                let client = try IdentityClient(server)
                for count in 1...3 {
                    #expect(Self.reasons(client, "https://anywhere.example/") == ["", ""])
                    #expect(server.project.continueURLs.unlisted.value == UInt64(2 * count))
                }
                try client.setTenant(["allowed_continue_domains"]) { $0.allowedContinueDomains = [] }
                #expect(Self.reasons(client, "https://anywhere.example/").first == "UNAUTHORIZED_DOMAIN")
            }
        }
    }

    @Test func aListHoldsHostsAndNothingElse() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            func reason(_ entries: [Text]) -> String {
                failure { try client.setTenant(["allowed_continue_domains"]) { $0.allowedContinueDomains = entries } }
                    .reason
            }
            let label = String(repeating: "a", count: 63)
            let long = [label, label, label, String(repeating: "a", count: 61)].joined(separator: ".")
            let good: [Text] = [
                "App.Example", "a.b:1", "a.b:65535", "*.app.example:8443", "localhost:3000", "xn--bcher-kva.example",
                "10.0.0.1", "com.example.app:", Text(long),
            ]
            for entry in good { #expect(reason([entry]) == "", "\(entry)") }
            let wrong: [Text] = [
                "", "*", "*.", "*.example", "a*.example", "*.*.example", "https://app.example", "app.example/",
                "app.example?", "user@app.example", "app.example.", ".app.example", "a..b", "app.example:0",
                "app.example:65536", "app.example:+1", "a b.example", "app_.example", "b\u{FC}cher.example",
                "-a.example", "a-.example", "https:", "javascript:", ":", "[::2]", Text(long + "a"),
                Text(label + "a.example"),
            ]
            for entry in wrong {
                #expect(reason([entry]) == "INVALID_CONTINUE_DOMAIN", "\(entry)")
            }
            let fifty = (0..<50).map { Text("a\($0).example") }
            #expect(reason(fifty) == "" && reason(fifty + ["b.example"]) == "INVALID_CONTINUE_DOMAIN")
        }
    }
}

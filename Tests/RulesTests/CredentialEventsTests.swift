import Base
import Messages
import Rules
import Testing

/// What the event log says of a change of a credential.
@Suite struct CredentialEventsTests {
    private static let acme = Scope(tenants: .tenantID("acme"))

    @Test func `A service account's change is told by its fields, and its rights by their values`() {
        let before = ServiceAccount(serviceAccountID: "backend", role: .app, scope: Self.acme)
        let rows: [((inout ServiceAccount) -> Void, Text)] = [
            ({ _ in }, "backend"),
            ({ $0.displayName = "a, b=c" }, "backend:display_name"),
            ({ $0.role = .projectAdmin }, "backend:role=project-admin"),
            ({ $0.role = .unspecified }, "backend:role=none"),
            ({ $0.scope = Scope(tenants: .all(true)) }, "backend:scope=all tenants"),
            ({ $0.scope = Scope(tenants: .tenantID("")) }, "backend:scope=the default pool"),
            ({ $0.quotas = CallerQuotas(mutationsPerSecond: 1) }, "backend:quotas"),
            ({ $0.quotas = CallerQuotas() }, "backend"),
            (
                {
                    $0.customTokens = true
                    $0.disabled = true
                    $0.trustedEndUserIP = true
                }, "backend:custom_tokens=true,disabled=true,trusted_end_user_ip=true"
            ),
        ]
        for (change, wanted) in rows {
            var account = before
            change(&account)
            #expect(account.eventDetail(since: before) == wanted)
        }
        var disabled = before
        disabled.disabled = true
        #expect(before.eventDetail(since: disabled) == "backend:disabled=false")
    }

    @Test func `An API key's change is told by its fields, and its rights by their values`() {
        var key = ApiKey(apiKeyID: "k1", role: .app, scope: Self.acme)
        #expect(key.eventDetail(since: ApiKey()) == "k1:role=app,scope=acme")
        let before = key
        key.displayName = "Shop"
        key.expiresAtMicros = 1
        key.allowedAddresses = ["192.0.2.0/24"]
        key.previousSecretUntilMicros = 2
        key.quotaOwnerID = "k0"
        key.exportPasswordHashes = true
        let wanted: [String] = [
            "display_name", "export_password_hashes=true", "expires_at_micros", "allowed_addresses",
            "previous_secret_until_micros", "quotas",
        ]
        #expect(key.eventDetail(since: before).string == "k1:\(wanted.joined(separator: ","))")
    }

    @Test func `A certificate mapping is told with its rights`() {
        var mapping = CertificateMapping(certificateMappingID: "m1", role: .verifier, scope: Self.acme)
        mapping.trustedEndUserIP = true
        #expect(mapping.eventDetail == "m1:role=verifier,scope=acme,trusted_end_user_ip=true")
    }
}

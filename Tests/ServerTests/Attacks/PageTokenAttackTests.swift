import Base
import Messages
import Service
import TestSupport
import Testing

/// A page token continues the listing that gave it out, and nothing else: every list method × every misuse.
@Suite struct PageTokenAttackTests {
    private struct Listing {
        let method: PublishedMethod
        let token: Text

        init(_ method: PublishedMethod, _ client: RawClient) throws {
            self.method = method
            var request = EncodedMessage()
            request.append(try #require(method.field(named: "page_size")).number, 1)
            let page: EncodedMessage = try client.call(method.fullName, request)
            token = page.text(try #require(method.responseFields.first { $0.name == "next_page_token" }).number)
            try #require(!token.isEmpty, "\(method.fullName) needs two items")
        }

        func next(
            _ token: Text, _ client: RawClient, _ change: (inout EncodedMessage) -> Void = { _ in }
        ) -> String {
            failure {
                var request = EncodedMessage()
                change(&request)
                request.append(method.field(named: "page_token")?.number ?? 0, token)
                let _: EncodedMessage = try client.call(method.fullName, request)
            }.reason
        }

        /// The tokens of all pages of one item each.
        func walk(_ client: RawClient) throws -> [Text] {
            var tokens = [token]
            while tokens.count < 50, let last = tokens.last, !last.isEmpty {
                var request = EncodedMessage()
                request.append(try #require(method.field(named: "page_size")).number, 1)
                request.append(try #require(method.field(named: "page_token")).number, last)
                let page: EncodedMessage = try client.call(method.fullName, request)
                tokens.append(
                    page.text(try #require(method.responseFields.first { $0.name == "next_page_token" }).number))
            }
            return tokens
        }

        /// The fields of numbers and messages, which are all filters; these requests have no filter of another kind.
        var filters: [PublishedMethod.Field] {
            method.requestFields.filter { $0.type != 9 && $0.name != "page_size" }
        }
    }

    /// UpdateMany has page tokens as well, but needs a condition: `ManyTenantsTests` and `ManyUsersTests` test it.
    private static let listings = PublishedMethod.all.filter {
        $0.field(named: "page_token") != nil && !$0.fullName.hasSuffix("/UpdateMany")
    }

    @Test func `A page token is good for its own listing only`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            for tenantID in ["", "acme"] as [Text] { try Self.fill(tenantID, client) }
            let raw = client.client
            let methods = Self.listings
            let listings = try methods.map { try Listing($0, raw) }
            var caseCount = 0
            func expectRefused(_ reason: String, _ comment: Comment) {
                caseCount += 1
                #expect(reason == "INVALID_PAGE_TOKEN", comment)
            }
            for listing in listings {
                let name = listing.method.fullName
                #expect(listing.next(listing.token, raw) == "", "\(name): the page after may have another size")
                // The default pool's id is empty: a page may end behind an empty position.
                let tokens = try listing.walk(raw)
                #expect(tokens.last == "" && Set(tokens).count == tokens.count, "\(name): \(tokens.count) pages")
                for other in listings where other.method.fullName != name {
                    expectRefused(listing.next(other.token, raw), "\(name) with a token of \(other.method.fullName)")
                }
                if let tenant = listing.method.field(named: "tenant_id") {
                    let reason = listing.next(listing.token, raw) { $0.append(tenant.number, "acme") }
                    expectRefused(reason, "\(name) in another tenant")
                }
                for filter in listing.filters {
                    let reason = listing.next(listing.token, raw) {
                        // A message whose first field is a text, like a condition on a user.
                        guard filter.type != 11 else { return $0.append(filter.number, "\n\u{1}x") }
                        $0.append(filter.number, 1)
                    }
                    expectRefused(reason, "\(name) with another \(filter.name)")
                }
                for altered in Self.alterations(of: listing.token) {
                    expectRefused(listing.next(altered, raw), "\(name) with \(altered)")
                }
            }
            #expect(listings.count >= 7 && caseCount >= 500, "\(listings.count) methods, \(caseCount) cases")
        }
    }

    /// Whatever ends a page, each item is listed once, in the same order.
    @Test func `A page ends at each of its bounds and the next one goes on`() async throws {
        let bounds: [(String, @Sendable (inout Limits) -> Void)] = [
            ("bytes of items", { $0.pageBytesMax = 1 }), ("rows read", { $0.pageRowsReadMax = 1 }),
            ("bytes read", { $0.pageBytesReadMax = 1 }),
        ]
        for (name, bound) in bounds {
            try await withServer(configure: { bound(&$0.limits) }) { server in
                let client = try IdentityClient(server)
                for tenantID in ["", "acme"] as [Text] { try Self.fill(tenantID, client) }
                let methods = Self.listings
                #expect(methods.count >= 7)
                for method in methods {
                    let items = try #require(method.responseFields.first { $0.name != "next_page_token" }).number
                    let (bounded, pageCount) = try Self.items(items, of: method, pageSize: 1_000, client.client)
                    let (single, _) = try Self.items(items, of: method, pageSize: 1, client.client)
                    #expect(bounded == single && bounded.count >= 2, "\(method.fullName) by \(name)")
                    #expect(pageCount >= bounded.count, "\(method.fullName) by \(name)")
                }
            }
        }
    }

    /// The items of all pages, and how many pages there were.
    private static func items(
        _ number: Int, of method: PublishedMethod, pageSize: Int, _ client: RawClient
    ) throws -> ([[UInt8]], Int) {
        let tokenNumber = try #require(method.responseFields.first { $0.name == "next_page_token" }).number
        var items: [[UInt8]] = []
        var token = Text.empty
        for pageCount in 1...100 {
            var request = EncodedMessage()
            request.append(try #require(method.field(named: "page_size")).number, UInt64(pageSize))
            if !token.isEmpty { request.append(try #require(method.field(named: "page_token")).number, token) }
            let page: EncodedMessage = try client.call(method.fullName, request)
            items += page.messages(number)
            token = page.text(tokenNumber)
            if token.isEmpty { return (items, pageCount) }
        }
        Issue.record("\(method.fullName) has no last page")
        return (items, 100)
    }

    /// Cut after each character, with each character replaced, and the position alone, as tokens once were.
    private static func alterations(of token: Text) -> [Text] {
        let bytes = token.bytes
        let cut = (1..<bytes.count).map { Text(unchecked: Array(bytes[..<$0])) }
        let replaced = bytes.indices.map { index -> Text in
            var altered = bytes
            altered[index] = altered[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            return Text(unchecked: altered)
        }
        let position = Array((Base64.url.decode(bytes) ?? []).dropFirst(17))
        // An empty token starts the listing anew, which is no misuse.
        return (cut + replaced + [Text(unchecked: Base64.url.encode(position))]).filter { !$0.isEmpty }
    }

    /// Makes one more credential of each kind. `fill` makes two of everything that can be listed.
    private static func fillProject(_ name: Text, _ tenantID: Text, _ raw: RawClient) throws {
        let _: ProjectCreateApiKeyResponse = try raw.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .tenantID(tenantID))))
        let _: ProjectCreateServiceAccountResponse = try raw.call(
            "postern.v1.Project/CreateServiceAccount",
            ProjectCreateServiceAccountRequest(
                serviceAccountID: name, role: .app, scope: Scope(tenants: .all(true))))
        let mapping = CertificateMapping(
            name: .uri(Text("spiffe://example.org/\(name)")), issuerKeySha256: Text(String(repeating: "0", count: 64)),
            role: .app, scope: Scope(tenants: .all(true)))
        let _: ProjectCreateCertificateMappingResponse = try raw.call(
            "postern.v1.Project/CreateCertificateMapping",
            ProjectCreateCertificateMappingRequest(certificateMapping: mapping))
    }

    private static func fill(_ tenantID: Text, _ client: IdentityClient) throws {
        let raw = client.client
        if !tenantID.isEmpty {
            for id in [tenantID, "another"] {
                let _: TenantsCreateResponse = try raw.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: id))
            }
        }
        for index in 0..<2 {
            let email = Text("u\(index)@example.com")
            let _: UsersCreateResponse = try raw.call(
                "postern.v1.Users/Create", UsersCreateRequest(tenantID: tenantID, email: email))
            let _: AccountsSendOobCodeResponse = try raw.call(
                "postern.v1.Accounts/SendOobCode",
                AccountsSendOobCodeRequest(tenantID: tenantID, requestType: .passwordReset, email: email))
            let provider = Provider(providerID: Text("oidc.p\(index)"), clientID: "c", issuer: "https://idp.example")
            let _: ProvidersCreateResponse = try raw.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(tenantID: tenantID, provider: provider))
            try fillProject(Text("back-end-\(index)-\(tenantID)x"), tenantID, raw)
        }
        let wanted = Messages.Tenant(
            client: ClientConfig(permissions: ClientPermissions(disabledUserSignup: true)),
            recentLoginSeconds: 90)
        for path in ["recent_login_seconds", "client.permissions.disabled_user_signup"] as [Text] {
            let _: TenantsUpdateResponse = try raw.call(
                "postern.v1.Tenants/Update",
                TenantsUpdateRequest(
                    tenantID: tenantID, tenant: wanted, updateMask: ProtobufFieldMask(paths: [path])))
        }
        for index in 0..<2 {
            expectRefusal("ADMIN_RESTRICTED_OPERATION") {
                let _: AccountsSignUpResponse = try raw.call(
                    "postern.v1.Accounts/SignUp",
                    AccountsSignUpRequest(
                        tenantID: tenantID, email: Text("v\(index)@example.com"), password: Secret("correct horse")))
            }
        }
    }
}

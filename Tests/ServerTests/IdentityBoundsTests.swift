import Base
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing

/// An identity of a user holds no more than the user's own fields do, whoever puts it there: unbounded, four links made
/// a row of 15 MB.
@Suite struct IdentityBoundsTests {
    private static func text(_ count: Int) -> String { String(repeating: "x", count: count) }

    /// 251 bytes in labels of one.
    private static let domain = [String](repeating: "x", count: 126).joined(separator: ".")

    /// An identity with the longest of everything.
    private static let longest = ProviderInfo(
        providerID: "oidc.corp", rawID: "7", email: Text("a@\(domain)b"), displayName: Text(text(256)),
        photoURL: Text("https://a/\(text(2_038))"), phoneNumber: "+123456789012345")

    private static let wrong: [(Text, @Sendable (inout ProviderInfo) -> Void)] = [
        ("INVALID_DISPLAY_NAME", { $0.displayName = Text(text(257)) }),
        ("INVALID_PHOTO_URL", { $0.photoURL = Text("https://a/\(text(2_039))") }),
        ("INVALID_EMAIL", { $0.email = Text("aa@\(domain)b") }),
        ("INVALID_PHONE_NUMBER", { $0.phoneNumber = Text(text(1_000)) }),
    ]

    @Test func `An admin cannot link an identity that is too large`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp("ada@example.com").user!.uid
            func link(_ provider: ProviderInfo) throws {
                let _: UsersLinkResponse = try client.client.call(
                    "postern.v1.Users/Link", UsersLinkRequest(uid: uid, provider: provider))
            }
            for (reason, spoil) in Self.wrong {
                var provider = Self.longest
                spoil(&provider)
                expectRefusal(reason.string) { try link(provider) }
                expectRefusal(reason.string) {
                    try client.update(uid, ["link_providers"]) { $0.linkProviders = [provider] }
                }
            }
            #expect(try client.get(uid).providers.map(\.providerID) == ["password"])
            try link(Self.longest)
            var second = Self.longest
            second.providerID = "oidc.other"
            try client.update(uid, ["link_providers"]) { $0.linkProviders = [second] }
            let linked = try client.get(uid).providers.filter(\.isFederated)
            #expect(linked.map(\.photoURL) == [Self.longest.photoURL, Self.longest.photoURL])
        }
    }

    @Test func `A row of an import with such an identity is refused`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let rows = Self.wrong.map { reason, spoil -> ImportUser in
                var provider = Self.longest
                spoil(&provider)
                return ImportUser(uid: reason, providers: [provider])
            }
            let answer = try ImportTests.importing(
                client.client, rows + [ImportUser(uid: "ada", providers: [Self.longest])])
            let reasons = Self.wrong.map { $0.0 }
            #expect(answer.rejections.map(\.reason) == reasons && answer.createdCount == 1)
            #expect(try client.get("ada").providers == [Self.longest])
        }
    }

    /// Older servers stored such identities.
    @Test func `A stored identity that is too long is exported and its import says what is too long`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let rows = Self.wrong.map { reason, _ in
                ImportUser(uid: reason, providers: [ProviderInfo(providerID: "oidc.corp", rawID: reason)])
            }
            #expect(try ImportTests.importing(client.client, rows).createdCount == 4)
            try await server.project.store.write { transaction in
                for (reason, spoil) in Self.wrong {
                    let key = UserKey(.empty, reason)
                    guard let stored = try transaction.reading.get(Tables.users, key) else { continue }
                    var account = try Account(stored)
                    spoil(&account.user.providers[0])
                    try transaction.put(Tables.users, key, account.record)
                }
            }
            let stream = try RawStream<UsersExportResponse>(server, "postern.v1.Users/Export", UsersExportRequest())
            var exported: [ImportUser] = []
            while let message = try stream.next() { exported += message.users }
            for (reason, spoil) in Self.wrong {
                var expected = ProviderInfo(providerID: "oidc.corp", rawID: reason)
                spoil(&expected)
                let row = exported.first { $0.uid == reason }
                #expect(row?.providers == [expected])
            }
            let answer = try ImportTests.importing(client.client, exported, onConflict: .replace)
            let messages = Dictionary(uniqueKeysWithValues: answer.rejections.map { ($0.uid, $0.message.string) })
            #expect(messages["INVALID_DISPLAY_NAME"] == "providers[0].display_name: must have at most 256 bytes")
            #expect(
                messages["INVALID_PHOTO_URL"]
                    == "providers[0].photo_url: must be an http or https URL with a host, of at most 2048 bytes")
            #expect(messages["INVALID_EMAIL"] == "providers[0].email: must have at most 254 bytes")
            #expect(
                messages["INVALID_PHONE_NUMBER"]
                    == "providers[0].phone_number: must be in E.164 form with at most 15 digits, for example "
                    + "+14155550123")
        }
    }

    /// The user cannot change what the provider says, and must not be locked out by it.
    @Test func `What a provider says at such length is left out and the user signs in`() async throws {
        let fake = FakeIdentityProvider(clock: ManualClock().clock)
        defer { fake.close() }
        try await withServer { server in
            let client = try server.connect()
            let _: ProvidersCreateResponse = try client.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: fake.provider("oidc.corp")))
            let person = FakeIdentityProvider.User(
                "7", email: Text("a@\(Self.text(253))"), name: Text(Self.text(257)),
                picture: Text("https://a/\(Self.text(2_039))"))
            for isNew in [true, false] {
                let credential = IdpCredential(
                    providerID: "oidc.corp", credential: .providerIDToken(fake.idToken(person)))
                let answer: AccountsSignInWithIdpResponse = try client.call(
                    "postern.v1.Accounts/SignInWithIdp", AccountsSignInWithIdpRequest(credential: credential))
                let entry = try #require(answer.user?.providers.first)
                #expect(answer.isNewUser == isNew && entry.rawID == "7")
                #expect(entry.displayName.isEmpty && entry.photoURL.isEmpty && entry.email.isEmpty)
            }
        }
    }
}

import Base
import Crypto
import Identity
import JSON
import Messages
import TestSupport
import Testing

/// A tenant replaces a provider by another one under the same id. The new provider's user 7 is another person, and
/// must not enter the account of the old provider's user 7.
@Suite struct ReplacedIssuerAttackTests {
    private typealias Person = FakeIdentityProvider.User

    /// How the provider is replaced.
    enum Replacement: CaseIterable { case update, deleteAndCreate }

    /// How the account got its identity.
    enum Origin: CaseIterable {
        case signIn, linking
        /// An admin linked it before the provider was configured: it names no issuer, as in an older server.
        case adminBefore
        case adminAfter, importBefore
    }

    private struct Scene {
        let client: IdentityClient
        let old: FakeIdentityProvider
        let new: FakeIdentityProvider
        let providerID: Text

        func create(_ provider: FakeIdentityProvider) throws {
            let _: ProvidersCreateResponse = try client.client.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider.provider(providerID)))
        }

        func update(to provider: FakeIdentityProvider) throws {
            let _: ProvidersUpdateResponse = try client.client.call(
                "postern.v1.Providers/Update",
                ProvidersUpdateRequest(
                    provider: provider.provider(providerID),
                    updateMask: ProtobufFieldMask(paths: ["issuer", "endpoints", "client_secret"])))
        }

        func replace(_ how: Replacement, by provider: FakeIdentityProvider) throws {
            switch how {
            case .update: try update(to: provider)
            case .deleteAndCreate:
                let _: ProvidersDeleteResponse = try client.client.call(
                    "postern.v1.Providers/Delete", ProvidersDeleteRequest(providerID: providerID))
                try create(provider)
            }
        }

        func rebind(from issuer: Text, validateOnly: Bool = false) throws -> [Text] {
            let answer: ProvidersRebindResponse = try client.client.call(
                "postern.v1.Providers/Rebind",
                ProvidersRebindRequest(providerID: providerID, fromIssuer: issuer, validateOnly: validateOnly))
            return answer.issuers
        }

        func credential(_ provider: FakeIdentityProvider, _ person: Person) -> IdpCredential {
            // GitHub has no ID tokens.
            let proof: IdpCredential.Credential =
                providerID == "github.com"
                ? .providerAccessToken(provider.accessToken(person)) : .providerIDToken(provider.idToken(person))
            return IdpCredential(providerID: providerID, credential: proof)
        }

        func signIn(
            _ provider: FakeIdentityProvider, _ person: Person, linkingTo idToken: Text = .empty
        ) throws -> AccountsSignInWithIdpResponse {
            try client.client.call(
                "postern.v1.Accounts/SignInWithIdp",
                AccountsSignInWithIdpRequest(credential: credential(provider, person), idToken: idToken))
        }

        func link(_ uid: Text, issuer: Text = .empty) throws {
            let _: UsersLinkResponse = try client.client.call(
                "postern.v1.Users/Link",
                UsersLinkRequest(
                    uid: uid, provider: ProviderInfo(providerID: providerID, rawID: "7", issuer: issuer)))
        }

        /// Makes an account with the identity of the old provider's user 7; returns its uid.
        func account(_ origin: Origin) throws -> Text {
            switch origin {
            case .signIn:
                try create(old)
                return try signIn(old, Person("7")).user!.uid
            case .linking:
                try create(old)
                let made = try client.signUp("ada@example.com")
                return try signIn(old, Person("7"), linkingTo: made.tokens!.idToken).user!.uid
            case .adminBefore, .adminAfter:
                let uid = try client.signUp("ada@example.com").user!.uid
                if origin == .adminAfter { try create(old) }
                try link(uid)
                if origin == .adminBefore { try create(old) }
                return uid
            case .importBefore:
                let user = ImportUser(uid: "ada", providers: [ProviderInfo(providerID: providerID, rawID: "7")])
                #expect(try ImportTests.importing(client.client, [user]).createdCount == 1)
                try create(old)
                return "ada"
            }
        }
    }

    private func withScene(_ providerID: Text = "oidc.corp", _ body: (Scene) throws -> Void) async throws {
        try await withServer { server in
            let (old, new) = (
                FakeIdentityProvider(clock: server.clock.clock), FakeIdentityProvider(clock: server.clock.clock)
            )
            defer {
                old.close()
                new.close()
            }
            try body(Scene(client: try IdentityClient(server), old: old, new: new, providerID: providerID))
        }
    }

    @Test(arguments: Origin.allCases, Replacement.allCases)
    func `Another issuer's user of the same identifier is somebody else`(
        _ origin: Origin, _ replacement: Replacement
    ) async throws {
        for providerID in ["oidc.corp", "google.com", "github.com"] as [Text] {
            try await withScene(providerID) { scene in
                let uid = try scene.account(origin)
                try scene.replace(replacement, by: scene.new)
                let stranger = try scene.signIn(scene.new, Person("7"))
                #expect(stranger.isNewUser && stranger.user?.uid != uid, "\(providerID)")
                // No account was lost: with the old issuer the old identity counts again, and no other.
                try scene.replace(replacement, by: scene.old)
                #expect(try scene.signIn(scene.old, Person("7")).user?.uid == uid, "\(providerID)")
                try scene.replace(replacement, by: scene.new)
                #expect(try scene.signIn(scene.new, Person("7")).user?.uid == stranger.user?.uid, "\(providerID)")
            }
        }
    }

    /// The key of an identity is made of its parts with U+0000 between them. A subject that held one could spell the
    /// identifier and the issuer of somebody else.
    @Test func `A subject that spells somebody else's identifier and issuer enters nobody's account`() async throws {
        try await withScene { scene in
            let uid = try scene.account(.signIn)
            let claims = String(decoding: scene.old.claims(Person("SUBJECT")).serialized(), as: UTF8.self)
            let issuer = scene.old.issuer.string
            for subject in ["7\\u0000\(issuer)", "7\u{0}\(issuer)", "\\u0000", "7\\u0000"] {
                let payload = [UInt8](claims.replacing("SUBJECT", with: subject).utf8)
                let credential = IdpCredential(
                    providerID: "oidc.corp", credential: .providerIDToken(scene.old.sign(payload: payload)))
                let refused = failure {
                    let signedIn: AccountsSignInWithIdpResponse = try scene.client.client.call(
                        "postern.v1.Accounts/SignInWithIdp", AccountsSignInWithIdpRequest(credential: credential))
                    #expect(signedIn.user?.uid != uid)
                }
                #expect(refused.reason == "INVALID_IDP_RESPONSE")
            }
            #expect(try scene.signIn(scene.old, Person("7")).user?.uid == uid)
        }
    }

    @Test(arguments: Origin.allCases, Replacement.allCases)
    func `A provider that has moved keeps its users when an admin says so`(
        _ origin: Origin, _ replacement: Replacement
    ) async throws {
        try await withScene { scene in
            let uid = try scene.account(origin)
            try scene.replace(replacement, by: scene.new)
            #expect(try scene.rebind(from: scene.old.issuer, validateOnly: true).count == 2)
            #expect(try scene.rebind(from: scene.old.issuer) == [scene.new.issuer, scene.old.issuer])
            let signedIn = try scene.signIn(scene.new, Person("7"))
            #expect(signedIn.user?.uid == uid && !signedIn.isNewUser)
            #expect(signedIn.user?.providers.first { $0.providerID == "oidc.corp" }?.issuer == scene.new.issuer)
            // The identity is the new issuer's from now on; the old issuer's no longer counts, even when it is back.
            try scene.replace(replacement, by: scene.old)
            #expect(try scene.signIn(scene.old, Person("7")).isNewUser)
            // A second time changes nothing.
            #expect(try scene.rebind(from: scene.new.issuer).contains(scene.new.issuer))
        }
    }

    @Test func `A validated rebinding changes nothing, and a wrong one is refused`() async throws {
        try await withScene { scene in
            expectRefusal("PROVIDER_NOT_FOUND") { _ = try scene.rebind(from: "https://a.example") }
            _ = try scene.account(.signIn)
            try scene.update(to: scene.new)
            _ = try scene.rebind(from: scene.old.issuer, validateOnly: true)
            #expect(try scene.signIn(scene.new, Person("7")).isNewUser)
            let long = Text("https://\(String(repeating: "x", count: 2_048))")
            for issuer in ["", scene.new.issuer, "with space", "tab\t", "ü", long] {
                expectRefusal("INVALID_ISSUER") { _ = try scene.rebind(from: issuer) }
            }
            for number in 0..<8 { _ = try scene.rebind(from: Text("https://\(number).example")) }
            expectRefusal("TOO_MANY_REBINDINGS") { _ = try scene.rebind(from: "https://more.example") }
        }
    }

    @Test func `The new issuer's identity proves nobody of the old one, nor joins them`() async throws {
        try await withScene { scene in
            _ = try scene.account(.linking)
            let ada = try scene.client.signIn("ada@example.com").tokens!
            try scene.update(to: scene.new)
            expectRefusal("USER_MISMATCH") {
                let _: AccountsReauthenticateResponse = try scene.client.client.call(
                    "postern.v1.Accounts/Reauthenticate",
                    AccountsReauthenticateRequest(
                        idToken: ada.idToken, credential: .idp(scene.credential(scene.new, Person("7")))))
            }
            expectRefusal("PROVIDER_ALREADY_LINKED") {
                _ = try scene.signIn(scene.new, Person("7"), linkingTo: ada.idToken)
            }
        }
    }

    @Test func `One identity has one account, whatever issuer an admin names`() async throws {
        try await withScene { scene in
            let uid = try scene.account(.adminBefore)
            let other = try scene.client.signUp("eve@example.com").user!.uid
            for issuer in [.empty, scene.old.issuer] as [Text] {
                expectRefusal("FEDERATED_USER_ID_ALREADY_LINKED") { try scene.link(other, issuer: issuer) }
            }
            #expect(try scene.signIn(scene.old, Person("7")).user?.uid == uid)
            for issuer in [.empty, scene.old.issuer] as [Text] {
                expectRefusal("FEDERATED_USER_ID_ALREADY_LINKED") { try scene.link(other, issuer: issuer) }
            }
            expectRefusal("INVALID_ISSUER") { try scene.link(other, issuer: "no issuer") }
            try scene.link(other, issuer: scene.new.issuer)
            try scene.update(to: scene.new)
            #expect(try scene.signIn(scene.new, Person("7")).user?.uid == other)
        }
    }
}

import Base
import Federation
import JSON
import Messages
import Reactor
import Rules
import TestSupport
import Testing

/// Access tokens in every provider's own shape: whose they are, and for which client they were made.
@Suite struct AccessTokenTests {
    private typealias User = FakeIdentityProvider.User

    private static let bound: [Text] = ["google.com", "facebook.com", "github.com", "linkedin.com", "oidc.test"]
    private static let unbound: [Text] = ["twitter.com", "yahoo.com", "microsoft.com"]

    @Test(arguments: bound + unbound)
    func eachShapeIsRead(_ providerID: Text) async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration(providerID) { $0.acceptUnboundAccessTokens = true }
            let token = fixture.provider.accessToken(.ann)
            let profile = try await fixture.prove(.accessToken(token), configuration)
            #expect(profile.subject == "4711")
            #expect(profile.displayName == "Ann" && profile.photoURL == "https://img.example/ann.png")
            #expect(profile.email == (providerID == "twitter.com" ? "" : "ann@gmail.com"))
            let saysNothing = ["twitter.com", "facebook.com"].contains(providerID)
            #expect(profile.isEmailVerified == (saysNothing ? nil : true))
        }
    }

    /// The operator of client-2 has tokens of its users; here they are worth nothing.
    @Test(arguments: bound)
    func aTokenOfAnotherClientIsRefused(_ providerID: Text) async throws {
        try await withFederation { fixture in
            let token = fixture.provider.accessToken(.ann, clientID: "client-2")
            #expect(await fixture.error(.accessToken(token), fixture.configuration(providerID)) == .otherClient)
        }
    }

    @Test(arguments: unbound)
    func aTokenThatCannotBeTracedIsRefusedUnlessTheOperatorTakesThem(_ providerID: Text) async throws {
        try await withFederation { fixture in
            let token = fixture.provider.accessToken(.ann)
            #expect(await fixture.error(.accessToken(token), fixture.configuration(providerID)) == .unboundToken)
            let generous = fixture.configuration(providerID) { $0.acceptUnboundAccessTokens = true }
            #expect(await fixture.error(.accessToken(token), generous) == nil)
        }
    }

    @Test func `Requests are counted by what became of them`() async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration("google.com")
            _ = try await fixture.prove(.accessToken(fixture.provider.accessToken(.ann)), configuration)
            let counts = fixture.client.counts
            let answered = counts.answered.value
            #expect(answered > 0)
            #expect(counts.refused.value == 0 && counts.failed.value == 0)
            #expect(counts.duration.snapshot.cumulativeCounts.last == answered)
            _ = await fixture.error(.accessToken(Secret("none")), configuration)
            #expect(counts.refused.value == 1 && counts.failed.value == 0)
            fixture.provider.close()
            _ = await fixture.error(.accessToken(fixture.provider.accessToken(.ann)), configuration)
            #expect(counts.failed.value == 1)
        }
    }

    /// Answers are read where their time is measured, and nothing is sent for a tenant that has spent its time.
    @Test func readingAnAnswerTakesFromTheTimeOfItsTenant() async throws {
        let padding = [String](repeating: #"{"b":0}"#, count: 7_000).joined(separator: ",")
        let body = [UInt8](#"{"aud":"client-1","sub":"4711","a":[\#(padding)]}"#.utf8)
        let server = FakeHTTPServer { _ in .response(HTTPResponse(contentType: "application/json", body: body)) }
        defer { server.close() }
        try await withFederation(keyTime: .microseconds(1)) { fixture in
            func error(_ providerID: Text, _ tenantID: Text) async -> FederationError? {
                let configuration = fixture.configuration(providerID, tenantID: tenantID) {
                    $0.endpoints = ProviderEndpoints(
                        userInfo: Text("\(server.url)/me"),
                        tokenCheck: providerID == "google.com" ? Text("\(server.url)/check") : .empty)
                    $0.acceptUnboundAccessTokens = true
                }
                return await fixture.error(.accessToken(fixture.provider.accessToken(.ann)), configuration)
            }
            for (count, tenantID) in [(1, "t"), (2, "u")] as [(Int, Text)] {
                #expect(await error("google.com", tenantID) == .overloaded)
                #expect(server.requestCount("/check") == count && server.requestCount("/me") == 0)
            }
            #expect(await error("yahoo.com", "v") == nil)
            #expect(await error("yahoo.com", "v") == .overloaded)
            #expect(server.requestCount("/me") == 1)
        }
    }

    @Test func ofTheClaimsOnlyTheOneThatTrustLooksAtIsKept() async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration {
                $0.trust = ProviderTrust(
                    level: .always, requiredClaim: RequiredClaim(name: "hd", value: "corp.example"))
            }
            let user = User("1", email: "a@corp.example", claims: [.init("hd", "corp.example"), .init("more", "x")])
            let (profile, isEmailTrusted) = try await fixture.client.prove(
                .accessToken(fixture.provider.accessToken(user)), nonce: "", configuration, now: fixture.now,
                deadline: .now.advanced(by: .seconds(20)))
            #expect(profile.claims == ["hd": "corp.example"] && isEmailTrusted)
        }
    }

    @Test func introspectionNeedsAClientSecret() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.accessToken(.ann)
            let bare = fixture.configuration { $0.clientSecret = .empty }
            #expect(await fixture.error(.accessToken(token), bare) == .unboundToken)
            let wrong = fixture.configuration { $0.clientSecret = Secret("wrong") }
            for status in [401, 400, 403] {
                fixture.provider.setWrongClientStatus(status)
                #expect(await fixture.error(.accessToken(token), wrong) == .misconfigured(.clientRefused))
            }
        }
    }

    @Test(arguments: bound + unbound)
    func aTokenThatIsNoneIsRejected(_ providerID: Text) async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration(providerID) { $0.acceptUnboundAccessTokens = true }
            let error = await fixture.error(.accessToken(Secret("no-token")), configuration)
            #expect(error == (providerID == "github.com" ? .otherClient : .rejected))
        }
    }

    @Test(arguments: ["a b", "a\r\nX-Evil: 1", "é", "\u{1}"])
    func aTokenThatCannotBeSentIsRejected(_ token: String) async throws {
        try await withFederation { fixture in
            for providerID in Self.bound + Self.unbound {
                let configuration = fixture.configuration(providerID) { $0.acceptUnboundAccessTokens = true }
                #expect(await fixture.error(.accessToken(Secret(token)), configuration) == .rejected, "\(providerID)")
            }
        }
    }

    @Test func aTokenHasALimit() async throws {
        try await withFederation { fixture in
            let most = String(repeating: "t", count: Limits().providerTokenMax)
            #expect(await fixture.error(.accessToken(Secret(most))) == .rejected)
            #expect(await fixture.error(.accessToken(Secret(most + "t"))) == .flawed(.malformed))
            #expect(await fixture.error(.accessToken(.empty)) == .flawed(.malformed))
        }
    }

    @Test func anAccessTokenCarriesNoNonce() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.accessToken(.ann)
            #expect(await fixture.error(.accessToken(token), nonce: "n1") == .flawed(.wrongNonce))
        }
    }

    @Test func gitHubsPrimaryAddressCountsAndSaysWhetherItIsVerified() async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration("github.com")
            let unverified = User("1", email: "a@example.com", emailVerified: false)
            let profile = try await fixture.prove(
                .accessToken(fixture.provider.accessToken(unverified)), configuration)
            #expect(profile.email == "a@example.com" && profile.isEmailVerified == false)
            // Without the scope user:email there is no list of addresses.
            let shy = User("2")
            let silent = try await fixture.prove(.accessToken(fixture.provider.accessToken(shy)), configuration)
            #expect(silent.email.isEmpty && silent.isEmailVerified == nil && silent.displayName.isEmpty)
        }
    }

    /// A page's email is shown by its owner, and the page does not say whether it is verified.
    @Test(arguments: [TrustLevel.unspecified, .always])
    func `The email of a GitHub page is trusted at no level of trust`(level: TrustLevel) async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration("github.com") { $0.trust = ProviderTrust(level: level) }
            let shown = User("3", claims: [.init("shown_email", "victim@example.com")])
            let (profile, isEmailTrusted) = try await fixture.client.prove(
                .accessToken(fixture.provider.accessToken(shown)), nonce: "", configuration, now: fixture.now,
                deadline: .now.advanced(by: .seconds(20)))
            #expect(profile.email == "victim@example.com" && profile.isEmailVerified == false && !isEmailTrusted)
        }
    }

    @Test func appleHasNoAccessTokensToAskWith() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.accessToken(.ann)
            let configuration = fixture.configuration("apple.com")
            #expect(await fixture.error(.accessToken(token), configuration) == .unboundToken)
        }
    }

    @Test(
        arguments: FakeIdentityProvider.Misbehaviour.allCases.filter { $0 != .none && $0 != .silent }, bound + unbound)
    func whateverAnEndpointDoesIsAnOutageOrARefusal(
        _ misbehaviour: FakeIdentityProvider.Misbehaviour, _ providerID: Text
    ) async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration(providerID) { $0.acceptUnboundAccessTokens = true }
            let token = fixture.provider.accessToken(.ann)
            fixture.provider.misbehave(misbehaviour)
            let error = await fixture.error(.accessToken(token), configuration)
            switch misbehaviour {
            case .flood: #expect(error == .unavailable(.tooLarge))
            case .redirect: #expect(error == .unavailable(.redirected))
            case .nothing: #expect(error != nil)
            default: #expect(error == .unavailable(.badAnswer))
            }
        }
    }
}

import Base
import Crypto
import Identity
import JSON
import Messages
import Service
import TestSupport
import Testing

/// An identity provider whose key set is made to keep the server's processors busy: whoever administers a tenant
/// chooses its providers.
@Suite struct ProviderKeyAttackTests {
    private static let ada = FakeIdentityProvider.User("ada-1", email: "ada@example.com")

    /// Unless a test says otherwise the tenant has more processor time than a slow machine takes.
    private func withProvider(
        configure: @Sendable (inout Instance.Configuration) -> Void = {
            $0.limits.providerKeyTimePerTenantMax = .seconds(60)
        },
        _ body: (TestServer, FakeIdentityProvider, IdentityClient) async throws -> Void
    ) async throws {
        try await withServer(configure: configure) { server in
            let provider = FakeIdentityProvider(clock: server.clock.clock)
            defer { provider.close() }
            let client = try IdentityClient(server)
            let _: ProvidersCreateResponse = try client.client.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider.provider("oidc.corp")))
            try await body(server, provider, client)
        }
    }

    private static func signIn(_ client: IdentityClient, _ token: Secret) throws {
        let _: AccountsSignInWithIdpResponse = try client.client.call(
            "postern.v1.Accounts/SignInWithIdp",
            AccountsSignInWithIdpRequest(
                credential: IdpCredential(providerID: "oidc.corp", credential: .providerIDToken(token))))
    }

    private static func rsa(_ id: Text, modulus: [UInt8], exponent: [UInt8] = [1, 0, 1]) -> JSONValue {
        [
            "kty": "RSA", "kid": .string(id), "n": .string(Text(unchecked: Base64.url.encode(modulus))),
            "e": .string(Text(unchecked: Base64.url.encode(exponent))),
        ]
    }

    /// The primes below 168. A modulus of these tests is odd, has the highest bit set and is a multiple of none of
    /// them, so a full check would have to test whether it is a prime.
    private static let primes = (3..<168).filter { number in (2..<number).allSatisfy { !number.isMultiple(of: $0) } }

    private static func modulus(_ byteCount: Int, _ random: inout SeededRandom) -> [UInt8] {
        while true {
            var modulus = random.bytes(byteCount)
            modulus[0] |= 0x80
            modulus[byteCount - 1] |= 1
            let isClean = primes.allSatisfy { prime in modulus.reduce(0) { ($0 << 8 | Int($1)) % prime } != 0 }
            if isClean { return modulus }
        }
    }

    @Test func aSetOf64LargeKeysCostsTheCheckOfOne() async throws {
        try await withProvider { server, provider, client in
            var random = SeededRandom.printed()
            provider.setOtherKeys((0..<63).map { Self.rsa(Text("k\($0)"), modulus: Self.modulus(512, &random)) })
            for _ in 0..<5 { try Self.signIn(client, provider.idToken(Self.ada)) }
            #expect(server.project.providers.checkedKeys.value == 1)
            // A key that a token names is checked once for each fetch of the set.
            for _ in 0..<3 {
                let foreign = provider.sign(provider.claims(Self.ada), header: [("kid", "k7")])
                #expect((failure { try Self.signIn(client, foreign) }).metadata("detail") == "BAD_SIGNATURE")
            }
            #expect(server.project.providers.checkedKeys.value == 2)
            // The token names a key that is not in the set: the set is fetched again, and none of its keys is checked.
            server.clock.advance(by: .seconds(11))
            let unknown = provider.sign(provider.claims(Self.ada), header: [("kid", "nobody")])
            #expect((failure { try Self.signIn(client, unknown) }).metadata("detail") == "UNKNOWN_KEY")
            #expect(provider.jwksRequestCount == 2)
            #expect(server.project.providers.checkedKeys.value == 2)
        }
    }

    @Test func aTokenThatNamesNoKeyOrManyIsTriedWithFourAtMost() async throws {
        try await withProvider { server, provider, client in
            var random = SeededRandom.printed()
            let modulus = Self.modulus(512, &random)
            func expect(_ others: Int, id: Text, _ header: [(Text, JSONValue?)], _ detail: String) {
                server.clock.advance(by: .days(2))
                provider.setOtherKeys((0..<others).map { _ in Self.rsa(id, modulus: modulus) })
                let token = provider.sign(provider.claims(Self.ada), header: header)
                #expect((failure { try Self.signIn(client, token) }).metadata("detail") ?? "" == detail)
            }
            // With the provider's own key there are four keys, and five.
            expect(3, id: "other", [("kid", nil)], "")
            expect(4, id: "other", [("kid", nil)], "UNKNOWN_KEY")
            expect(4, id: "same", [("kid", "same")], "BAD_SIGNATURE")
            expect(5, id: "same", [("kid", "same")], "UNKNOWN_KEY")
        }
    }

    @Test func aKeyThatMustNotBeUsedIsRefusedWhenItIsWanted() async throws {
        try await withProvider { server, provider, client in
            var random = SeededRandom.printed()
            let good = Self.modulus(256, &random)
            var even = good
            even[255] &= 0xFE
            let keys: [JSONValue] = [
                Self.rsa("even", modulus: even), Self.rsa("factors", modulus: [UInt8](repeating: 0xFF, count: 256)),
                Self.rsa("e3", modulus: good, exponent: [3]), Self.rsa("e-even", modulus: good, exponent: [1, 0, 0]),
                Self.rsa("e-huge", modulus: good, exponent: [1, 0, 0, 0, 1]),
                Self.rsa("e-4096", modulus: good, exponent: good), Self.rsa("e-none", modulus: good, exponent: []),
                Self.rsa("8192", modulus: Self.modulus(1_024, &random)),
                Self.rsa("4104", modulus: Self.modulus(513, &random)),
                Self.rsa("1024", modulus: Self.modulus(128, &random)), Self.rsa("none", modulus: []),
            ]
            provider.setOtherKeys(keys)
            for key in keys {
                let token = provider.sign(provider.claims(Self.ada), header: [("kid", key["kid"])])
                let refused = failure { try Self.signIn(client, token) }
                #expect(refused.reason == "INVALID_IDP_RESPONSE" && refused.metadata("detail") == "UNKNOWN_KEY")
            }
            try Self.signIn(client, provider.idToken(Self.ada))
        }
    }

    /// With one microsecond each window has room for one step: the document, the set or the key.
    @Test func aTenantThatSpentItsTimeWaits() async throws {
        try await withProvider(configure: { $0.limits.providerKeyTimePerTenantMax = .microseconds(1) }) {
            server, provider, client in
            for refusals in 1...2 {
                let refused = failure { try Self.signIn(client, provider.idToken(Self.ada)) }
                #expect(refused.reason == "SERVER_OVERLOADED" && refused.retryAfter != nil)
                #expect(server.project.providers.refusedKeyTimes.value == UInt64(refusals))
                server.clock.advance(by: .seconds(10))
            }
            try Self.signIn(client, provider.idToken(Self.ada))
            // A sign-in with known keys costs no more of that time.
            for _ in 0..<5 { try Self.signIn(client, provider.idToken(Self.ada)) }
            #expect(server.project.providers.refusedKeyTimes.value == 2)
        }
    }
}

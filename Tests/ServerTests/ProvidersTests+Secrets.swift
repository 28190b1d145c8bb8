import Base
import Crypto
import Identity
import Messages
import Store
import TestSupport
import Testing

/// The client secret of a provider.
extension ProvidersTests {
    @Test func theClientSecretIsNowhereToBeRead() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ManualClock()
            try await withServer(
                directory: directory, clock: clock, masterKey: .generate(random: .system)
            ) { server in
                let admin = Admin(client: try server.connect())
                let marker = [UInt8]("marker-secret-0815".utf8)
                var answers = [try admin.create(corp()).encoded(), try admin.get("oidc.corp").encoded()]
                answers.append(try admin.list().encoded())
                var change = corp()
                change.clientSecret = Secret("marker-secret-0815-b")
                answers.append(try admin.update(change, ["client_secret"]).encoded())
                for answer in answers { #expect(!answer.contains(marker)) }
                let file = try #require(readFile("\(directory)/data.mdb"))
                #expect(file.contains(Array("https://id.corp.example".utf8)))
                #expect(!file.contains(marker))
            }
        }
    }

    @Test func theSecretIsReplacedKeptAndRemoved() async throws {
        try await withAdmin { admin, _ in
            _ = try admin.create(corp())
            var change = corp()
            change.clientID = "client-2"
            #expect(try admin.update(change, ["client_id"]).hasClientSecret)
            change.clientSecret = .empty
            #expect(try !admin.update(change, ["client_secret"]).hasClientSecret)
            change.clientSecret = Secret("other")
            #expect(try !admin.update(change, ["client_id"]).hasClientSecret)
            #expect(try admin.update(change, ["client_secret"]).hasClientSecret)
        }
    }

    /// Else an admin who may not read the secret could have it sent to a server of their own.
    @Test(
        arguments: ["issuer", "endpoints", "endpoints.token", "endpoints.token_check", "endpoints.discovery"] as [Text])
    func whereTheSecretGoesIsChangedOnlyByWhoKnowsIt(_ path: Text) async throws {
        try await withAdmin { admin, _ in
            _ = try admin.create(corp())
            var change = corp()
            change.issuer = "https://evil.example"
            change.endpoints = ProviderEndpoints(
                discovery: "https://evil.example/d", token: "https://evil.example/t",
                tokenCheck: "https://evil.example/c")
            let refused = failure { _ = try admin.update(change, [path]) }
            #expect(refused.reason == "CLIENT_SECRET_REQUIRED" && refused.code == .invalidArgument)
            _ = try admin.update(change, [path, "client_secret"])
            // Without a secret there is nothing to send.
            var bare = corp("oidc.bare")
            bare.clientSecret = .empty
            _ = try admin.create(bare)
            change.providerID = "oidc.bare"
            _ = try admin.update(change, [path])
        }
    }

    /// Without `apple` the secret itself is sent, and with `apple` it is a private key.
    @Test func `Apple's private key is not kept as a secret that is sent, nor a sent secret as a private key`()
        async throws
    {
        try await withAdmin { admin, _ in
            let pem = PEM.encode("PRIVATE KEY", SigningKey.generate(.es256).exportDER())
            func apple(_ key: AppleKey?, _ secret: Secret) -> Provider {
                var provider = Provider(providerID: "apple.com", clientID: "client-1")
                (provider.apple, provider.clientSecret) = (key, secret)
                return provider
            }
            func refusal(_ provider: Provider, _ paths: [Text]) -> String {
                failure { _ = try admin.update(provider, paths) }.reason
            }
            let key = AppleKey(teamID: "T1", keyID: "K1")
            expectRefusal("INVALID_CLIENT_SECRET") { _ = try admin.create(apple(nil, pem)) }
            _ = try admin.create(apple(key, pem))
            #expect(refusal(apple(nil, .empty), ["apple"]) == "CLIENT_SECRET_REQUIRED")
            #expect(refusal(apple(nil, pem), ["apple", "client_secret"]) == "INVALID_CLIENT_SECRET")
            #expect(refusal(apple(AppleKey(teamID: "T2", keyID: "K2"), .empty), ["apple"]) == "")
            #expect(refusal(apple(nil, Secret("ready-made")), ["apple", "client_secret"]) == "")
            #expect(refusal(apple(key, .empty), ["apple"]) == "CLIENT_SECRET_REQUIRED")
            #expect(refusal(apple(key, Secret("ready-made")), ["apple", "client_secret"]) == "INVALID_CLIENT_SECRET")
            #expect(refusal(apple(key, pem), ["apple", "client_secret"]) == "")
            // Without a secret there is nothing to send.
            #expect(refusal(apple(key, .empty), ["client_secret"]) == "")
            #expect(refusal(apple(nil, .empty), ["apple"]) == "")
        }
    }

    @Test func aMaskThatChangesNothingOfItNeedsNoSecret() async throws {
        try await withAdmin { admin, _ in
            _ = try admin.create(corp())
            _ = try admin.update(corp(), ["issuer", "endpoints", "trust"])
        }
    }
}

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

    @Test func aMaskThatChangesNothingOfItNeedsNoSecret() async throws {
        try await withAdmin { admin, _ in
            _ = try admin.create(corp())
            _ = try admin.update(corp(), ["issuer", "endpoints", "trust"])
        }
    }
}

import Base
import JSON
import Messages
import TestSupport
import Testing

@testable import postern

@Suite struct ProviderSettingsTests {
    @Test(
        arguments: [
            ([.passed, .passed, .skipped, .passed, .failed], "signing in with an authorization code of this provider"),
            ([.passed, .passed, .passed, .failed, .passed], "signing in with an access token of this provider"),
            (
                [.passed, .passed, .passed, .failed, .failed],
                "signing in with an access token or an authorization code of this provider"
            ),
            ([.passed, .failed, .skipped, .passed, .failed], "signing in with this provider"),
            ([.failed, .passed, .passed, .passed, .passed], "signing in with this provider"),
        ] as [([ProviderTestResult], String)])
    func `A test says what does not work`(results: [ProviderTestResult], subject: String) {
        let names: [Text] = ["discovery", "jwks", "user_info", "token_check", "token_exchange"]
        let steps = zip(names, results).map { ProviderTestStep(name: $0, result: $1) }
        #expect(ProviderCommands.fault(steps) == "\(subject) does not work as it is")
    }

    @Test func `Settings that are named make the mask, the others stay out of it`() throws {
        let arguments = Arguments(values: [
            "client-id": "c", "enabled": "false", "audiences": "a,b", "token-url": "https://t", "trust": "domains",
            "trust-domains": "a.example,b.example", "require-claim": "hd=a=b", "allow-private-addresses": "true",
            "apple-team-id": "T", "apple-key-id": "K",
        ])
        let settings = try ProviderSettings(arguments)
        #expect(
            settings.paths == [
                "client_id", "enabled", "additional_audiences", "endpoints.token", "trust", "allow_private_addresses",
                "apple",
            ])
        let provider = settings.provider
        #expect(provider.clientID == "c" && provider.additionalAudiences == ["a", "b"] && !provider.enabled)
        #expect(provider.endpoints == ProviderEndpoints(token: "https://t") && provider.allowPrivateAddresses)
        let claim = RequiredClaim(name: "hd", value: "a=b")
        #expect(
            provider.trust
                == ProviderTrust(level: .domains, domains: ["a.example", "b.example"], requiredClaim: claim))
        #expect(provider.apple == AppleKey(teamID: "T", keyID: "K"))
        #expect(try ProviderSettings(Arguments()).paths.isEmpty)
    }

    @Test(arguments: [
        ["trust-domains": "a.example"], ["require-claim": "a=b"], ["trust": "always", "require-claim": "a"],
        ["trust": "sometimes"], ["apple-team-id": "T"], ["apple-key-id": "K"], ["enabled": "yes"],
    ])
    func `What does not fit together is a wrong command line`(values: [String: String]) {
        let error = #expect(throws: CommandError.self) { try ProviderSettings(Arguments(values: values)) }
        #expect(error?.exitCode == .usage)
    }

    @Test func `A provider is printed without its secret`() {
        var provider = Provider()
        provider.providerID = "google.com"
        provider.clientSecret = Secret("marker")
        provider.hasClientSecret = true
        let text = String(decoding: provider.json.serialized(), as: UTF8.self)
        #expect(text.contains(#""has_client_secret":true"#) && !text.contains("marker"))
        #expect(provider.json["client_secret"] == nil)
    }

    @Test func `Deleting is asked first`() async {
        let no = TestConsole(answers: ["n"])
        #expect(await no.run("provider", "delete", "google.com", "--server", "127.0.0.1:1") == .declined)
        let yes = TestConsole()
        #expect(await yes.run("provider", "delete", "google.com", "-y", "--server", "127.0.0.1:1") == .unavailable)
    }

    @Test(arguments: ["--issuer", "--jwks-url"])
    func `An http URL is refused with the name of the flag that would allow it`(flag: String) async throws {
        try await withServer { server in
            func create(_ url: String, _ more: String...) async -> TestConsole.Outcome {
                let issuer = flag == "--issuer" ? [] : ["--issuer", "https://id.corp.example"]
                let words = ["provider", "create", "oidc.corp", "--client-id", "x", flag, url] + issuer
                return await TestConsole.run(words + more, on: server)
            }
            let refused = await create("http://127.0.0.1:9/x")
            #expect(refused.code == .general && refused.said.contains("--allow-http-loopback true"), "\(refused)")
            #expect(refused.said.contains("allow_http_loopback"))
            let malformed = await create("nonsense")
            #expect(malformed.code == .general && !malformed.said.contains("loopback"), "\(malformed)")
            let allowed = await create("http://127.0.0.1:9/x", "--allow-http-loopback", "true")
            #expect(allowed.code == .ok, "\(allowed)")
        }
    }
}

import Base
import JSON
import Messages
import TestSupport
import Testing

@testable import postern

@Suite struct AccountCommandsTests {
    @Test func `Parameters of an authorization request are pairs`() async {
        func run(_ parameters: String) async -> ExitCode {
            await TestConsole().run(
                "account", "auth-uri", "google.com", "--continue-uri", "https://app.example", "--scopes", "a,b",
                "--parameters", parameters, "--server", "127.0.0.1:1")
        }
        #expect(await run("prompt") == .usage)
        #expect(await run("prompt=login,hd=a=b") == .unavailable)
    }

    @Test func `What finishes a sign-in is printed with where it begins`() {
        let begun = AccountsCreateAuthUriResponse(
            authURI: "https://idp.example/auth?x=1", sessionID: "s", nonce: "n", codeVerifier: Secret("v"))
        let expected =
            #"{"registered":false,"sign_in_methods":[],"auth_uri":"https://idp.example/auth?x=1","#
            + #""session_id":"s","nonce":"n","code_verifier":"v","issuer":"","issuer_required":false}"#
        #expect(String(decoding: begun.json.serialized(), as: UTF8.self) == expected)
    }

    @Test func `A token of another tenant is refused with what names the tenant, or with a word on the key`()
        async throws
    {
        try await withServer { server in
            func run(_ words: String...) async -> TestConsole.Outcome { await TestConsole.run(words, on: server) }
            #expect(await run("tenant", "create", "acme").code == .ok)
            let (file, key) = ("\(server.directory)/password", "\(server.directory)/acme.key")
            writeFile(file, [UInt8]("correct horse".utf8))
            func signUp(_ tenant: String) async throws -> String {
                let made = await run(
                    "-t", tenant, "account", "sign-up", "--email", "ann@example.com", "--password-file", file, "-o",
                    "json")
                #expect(made.code == .ok, "\(made.said)")
                let tokens = try JSONValue(parsing: [UInt8](made.written.utf8))["tokens"]
                return try #require(tokens?["id_token"]?.string)
            }
            let token = try await signUp("acme")
            let refused = await run("token", "verify", token)
            #expect(refused.code == .general && refused.said.contains("\nhint: -t acme\n"), "\(refused.said)")
            #expect(await run("-t", "acme", "token", "verify", token).code == .ok)
            let made = await run(
                "apikey", "create", "--role", "verifier", "--scope-tenant", "acme", "--key-out", key)
            #expect(made.code == .ok, "\(made.said)")
            let ofPool = try await signUp("")
            let bound = TestConsole()
            let words = ["--server", "127.0.0.1:\(server.port)", "--key-file", key, "token", "verify", ofPool]
            #expect(await CommandLineTool.run(words, in: bound.console) == .general)
            #expect(bound.said.contains("hint: the key is bound to another tenant"), "\(bound.said)")
        }
    }
}

import Base
import JSON
import Messages
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
            + #""session_id":"s","nonce":"n","code_verifier":"v"}"#
        #expect(String(decoding: begun.json.serialized(), as: UTF8.self) == expected)
    }
}

import Base
import Glibc
import Messages
import TestSupport
import Testing

/// The example programs, run as their users would run them.
@Suite struct ExamplesTests {
    private static func signUp(_ client: RawClient) throws -> AccountsSignUpResponse {
        try client.call(
            "postern.v1.Accounts/SignUp",
            AccountsSignUpRequest(email: "ada@example.com", password: Secret("correct horse")))
    }

    // MARK: The service

    /// One request, and the whole answer.
    private static func get(_ path: String, port: UInt16, token: Text? = nil) throws -> String {
        let client = try RawClient(port: port)
        defer { client.close() }
        let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        try client.send(Array("GET \(path) HTTP/1.1\r\nHost: x\r\n\(authorization)\r\n".utf8))
        var answer: [UInt8] = []
        while let chunk = try? client.receive(4_096), !chunk.isEmpty { answer += chunk }
        return String(decoding: answer, as: UTF8.self)
    }

    @Test func aServiceProtectsItsEndpointAndRefusesWhatIsRevoked() async throws {
        try await withServer { server in
            let admin = try server.connect()
            let port = try freePort()
            let process = try ChildProcess(
                ChildProcess.built("ExampleService"), ["127.0.0.1:\(server.port)", keyFile(server), "\(port)"],
                output: "\(server.directory)/service")
            try await until("the service answers") { (try? Self.get("/", port: port)) != nil }
            let ada = try Self.signUp(admin)
            let token = ada.tokens!.idToken
            #expect(try Self.get("/hello", port: port).hasPrefix("HTTP/1.1 401"))
            #expect(try Self.get("/nothing", port: port, token: token).hasPrefix("HTTP/1.1 404"))
            #expect(try Self.get("/hello", port: port, token: "a.b.c").hasSuffix("INVALID_ID_TOKEN\n"))
            let welcome = try Self.get("/hello", port: port, token: token)
            #expect(welcome.hasPrefix("HTTP/1.1 200"))
            #expect(welcome.hasSuffix("hello \(ada.user!.uid), signed in with password\n"))
            server.clock.advance(by: .milliseconds(1))
            let _: UsersRevokeTokensResponse = try admin.call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: ada.user!.uid))
            var answer = welcome
            try await until("the revoked token is refused") {
                answer = try Self.get("/hello", port: port, token: token)
                return !answer.hasPrefix("HTTP/1.1 200")
            }
            #expect(answer.hasPrefix("HTTP/1.1 401"))
            #expect(answer.hasSuffix("TOKEN_EXPIRED\n"))
            process.kill()
        }
    }

    // MARK: The terminal

    @Test func aTerminalSignsInListensAndKnowsItsUserAfterARestart() async throws {
        try await withServer { server in
            _ = try Self.signUp(server.connect())
            let first = try drive(
                server,
                [
                    .expect("* nobody is signed in"), .type("whoami"), .expect("nobody"),
                    .type("sign-in ada@example.com"), .expect("password: "), .type("wrong password"),
                    .expect("invalidCredential"), .type("sign-in ada@example.com"),
                    .expect("password: "), .type("correct horse"), .expect("* signed in as ada@example.com"),
                    .type("name Ada"), .expect("hello, Ada"), .type("quit"),
                ])
            // The password that is typed at its prompt is not shown.
            #expect(first.contains("whoami") && !first.contains("correct horse"))
            _ = try drive(
                server,
                [
                    .expect("* welcome back, ada@example.com"), .type("whoami"), .expect("Ada ("),
                    .type("token"), .expect("signed in with password"), .type("sign-out"), .expect("* signed out"),
                    .type("quit"),
                ])
            _ = try drive(server, [.expect("* nobody is signed in"), .type("quit")])
        }
    }

    @Test func aTerminalSignsInWithAPhone() async throws {
        try await withServer { server in
            let tenant = Tenant(
                enablePhoneSignin: true,
                testPhoneNumbers: [TestPhoneNumber(phoneNumber: "+14155550123", code: "123456")])
            let _: TenantsUpdateResponse = try server.connect().call(
                "postern.v1.Tenants/Update",
                TenantsUpdateRequest(
                    tenant: tenant,
                    updateMask: ProtobufFieldMask(paths: ["enable_phone_signin", "test_phone_numbers"])))
            _ = try drive(
                server,
                [
                    .expect("* nobody is signed in"), .type("sign-in-phone 0149"), .expect("invalidPhoneNumber"),
                    .type("sign-in-phone +1 415 555 0123"), .expect("code: "), .type("654321"),
                    .expect("invalidVerificationCode"), .type("sign-in-phone +1 415 555 0123"), .expect("code: "),
                    .type("123456"), .expect("* signed in as +14155550123"), .type("token"),
                    .expect("signed in with phone"), .type("quit"),
                ])
        }
    }
}

import Base
import JSON
import PosternClient
import TestSupport
import Testing

@testable import postern

@Suite struct FailureReportTests {
    @Test func `A refusal is one line with its reason, and what can be done about it`() {
        let test = TestConsole()
        let failure = Failure(
            .permissionDenied, "ADMIN_RESTRICTED_OPERATION", "Sign-up is off.",
            metadata: [
                .init("tenant", "acme"), .init("toggle", "client.permissions.disabled_user_signup"),
                .init("required_role", "tenant-admin"), .init("decision_id", "d1"), .init("request_id", "r1"),
            ], guidance: .init(locale: "en", message: "Ask HR.", url: "https://x.org"))
        FailureReport(failure, at: nil).print(.table, to: test.console)
        #expect(
            test.said == """
                error: Sign-up is off. [ADMIN_RESTRICTED_OPERATION] request-id=r1
                hint: the tenant's setting client.permissions.disabled_user_signup refuses this; a tenant-admin can \
                change it: postern tenant update acme --disabled-user-signup false
                hint: recorded as d1: postern -t acme denials list
                hint: the tenant tells its users: Ask HR. https://x.org

                """)
    }

    private let ended = Failure(
        .unauthenticated, "TOKEN_EXPIRED", "The session has ended.",
        metadata: [
            .init("cause", "REVOKED_BY_REUSE"), .init("detail", "a\u{1B}b"), .init("pending_token", "s3cret"),
            .init("request_id", "r1"),
        ], violations: [.init(field: "id_token", description: "is old")], retryAfter: .milliseconds(1_500))

    @Test func `What the server tells of the reason is shown, a line each, but nothing worth stealing`() {
        let test = TestConsole()
        FailureReport(ended, at: nil).print(.table, to: test.console)
        #expect(
            test.said == """
                error: The session has ended. [TOKEN_EXPIRED] request-id=r1
                  id_token: is old
                  cause: REVOKED_BY_REUSE
                  detail: a\u{FFFD}b
                hint: try again in 2 s

                """)
    }

    @Test(arguments: [("acme", "acme"), ("", "\"\"")])
    func `A token of another tenant is told with the flag that names the tenant`(tenant: String, word: String) {
        let test = TestConsole()
        let failure = Failure(.tenantIDMismatch, "Of another.", metadata: [.init("tenant", tenant)])
        FailureReport(failure, at: nil).print(.table, to: test.console)
        #expect(test.said == "error: Of another. [TENANT_ID_MISMATCH]\nhint: -t \(word)\n")
        let ofTwoNames = TestConsole()
        FailureReport(Failure(.tenantIDMismatch, "Two."), at: nil).print(.table, to: ofTwoNames.console)
        #expect(ofTwoNames.said == "error: Two. [TENANT_ID_MISMATCH]\n")
    }

    @Test(
        arguments: [
            (.accountExistsWithDifferentCredential, "--link-to-file FILE"),
            (.unauthorizedDomain, "--allow-loopback-continue-url true"),
        ] as [(Reason, String)])
    func `What the command line can do about a refusal is said`(reason: Reason, flag: String) {
        let test = TestConsole()
        let failure = Failure(reason, "Refused.", metadata: [.init("pending_token", "s3cret")])
        FailureReport(failure, at: nil).print(.table, to: test.console)
        #expect(test.said.contains("\nhint: ") && test.said.contains(flag), "\(test.said)")
        #expect(!test.said.contains("s3cret"))
    }

    @Test(
        arguments: [
            (.emailExists, "--email EMAIL"), (.phoneNumberExists, "--phone-number NUMBER"), (.duplicateLocalID, "UID"),
        ] as [(Reason, String)])
    func `An admin is told how to see who has a name, and an end user is not`(reason: Reason, words: String) {
        let test = TestConsole()
        let failure = Failure(reason, "Taken.")
        FailureReport(failure, at: nil, of: UserCommands.create).print(.table, to: test.console)
        let hint = "postern user get \(words) shows the user who has it"
        #expect(test.said == "error: Taken. [\(reason.name)]\nhint: \(hint)\n")
        for command in AccountCommands.all {
            let endUser = TestConsole()
            FailureReport(failure, at: nil, of: command).print(.table, to: endUser.console)
            #expect(!endUser.said.contains("hint"), "\(endUser.said)")
        }
    }

    @Test(
        arguments: [
            ("Cannot reach a:1: The server's certificate was refused: hostname mismatch.", "--ca-file FILE"),
            ("Cannot reach a:1: Connection refused.", "is posternd running there?"),
        ])
    func `A refused certificate is no missing server`(message: String, hint: String) {
        let test = TestConsole()
        FailureReport(Failure(.connectionFailed, message), at: nil).print(.table, to: test.console)
        #expect(test.said.hasPrefix("error: \(message) [CONNECTION_FAILED]\nhint: \(hint)"), "\(test.said)")
    }

    @Test(arguments: [Reason.connectionLost, .storeUnavailable])
    func `Whether a change was made is to be looked up if nobody knows`(reason: Reason) {
        let test = TestConsole()
        FailureReport(Failure(reason, "Lost."), at: nil).print(.table, to: test.console)
        #expect(
            test.said == """
                error: Lost. [\(reason.name)]
                hint: a change may have been made all the same: look before you try again

                """)
    }

    @Test(arguments: [Reason.connectionLost, .storeUnavailable, .deadlineExceeded, .alreadyDone])
    func `Nobody is told to rotate again when the new secret may be lost`(reason: Reason) {
        let test = TestConsole()
        FailureReport(Failure(reason, "Lost."), at: nil, of: APIKeyCommands.rotate).print(.table, to: test.console)
        #expect(test.said.contains("\nhint: do not rotate again"), "\(test.said)")
        #expect(test.said.contains("the change was made") == (reason == .alreadyDone), "\(test.said)")
    }

    @Test func `A command that only reads has made no change`() {
        let test = TestConsole()
        FailureReport(Failure(.deadlineExceeded, "Late."), at: nil, of: APIKeyCommands.list)
            .print(.table, to: test.console)
        #expect(test.said == "error: Late. [DEADLINE_EXCEEDED]\n")
    }

    @Test(arguments: [Output.Format.json, .ndjson])
    func `With -o json a failure is one line of JSON`(format: Output.Format) throws {
        let test = TestConsole()
        FailureReport(ended, at: nil).print(format, to: test.console)
        #expect(test.said.filter { $0 == "\n" }.count == 1)
        #expect(
            try JSONValue(parsing: [UInt8](test.said.utf8)) == [
                "code": "UNAUTHENTICATED", "reason": "TOKEN_EXPIRED", "message": "The session has ended.",
                "metadata": ["cause": "REVOKED_BY_REUSE", "detail": "a\u{1B}b"],
                "violations": [["field": "id_token", "description": "is old"]], "request_id": "r1",
                "retry_after_seconds": 2, "hints": ["try again in 2 s"],
            ])
    }

    @Test func `A wrong API key and a wrong password of an end user are told apart`() async throws {
        try await withServer { server in
            let path = "\(server.directory)/wrong"
            writeFile(path, [UInt8]("pk_aaaaaaaaaaaa_\(String(repeating: "a", count: 43))\n".utf8))
            let caller = TestConsole()
            let key = ["--server", "127.0.0.1:\(server.port)", "--key-file", path]
            #expect(await CommandLineTool.run(key + ["tenant", "list"], in: caller.console) == .notAllowed)
            #expect(caller.said.contains("hint: the server does not take what \(path) holds"), "\(caller.said)")
            writeFile(path, [UInt8]("wrong horse".utf8))
            let words = ["account", "sign-in", "--email", "ann@x.org", "--password-file", path, "-o", "json"]
            let user = await TestConsole.run(words, on: server)
            let json = try JSONValue(parsing: [UInt8](user.said.utf8))
            #expect(user.code == .notAllowed && json["reason"] == "INVALID_LOGIN_CREDENTIALS", "\(user.said)")
            #expect(json["hints"] == ["this is the end user's email or password; the API key is good"])
        }
    }

    @Test(
        arguments: [
            (#"{"type":"service_account","private_key":"-----BEGIN"}"#, "is a service account's key file"),
            (#"{"api_key":{"api_key_id":"a"},"secret_key":"pk_a_b"}"#, "is its secret_key alone"),
            ("{}", "is JSON, not an API key"), ("secret\n", "one begins with pk_"), (" \n", "is empty"),
            ("pk_a_b\npk_c_d\n", "holds more than an API key"), ("eyJhbGciOiJub25lIn0", "one begins with pk_"),
        ])
    func `What can be no API key is told before anything is sent`(contents: String, message: String) async throws {
        try await withTemporaryDirectory { directory in
            writeFile("\(directory)/key", [UInt8](contents.utf8))
            let test = TestConsole()
            let code = await test.run("tenant", "list", "--server", "127.0.0.1:1", "--key-file", "\(directory)/key")
            #expect(code == .usage && test.said.contains(message), "\(test.said)")
        }
    }

    @Test(arguments: ["pk_a_b\n", "eyJhbGciOiJub25lIn0.e30.c2ln"])
    func `An API key is sent, and so is a caller's JWT`(contents: String) throws {
        let sent = try KeyFile.credential(in: [UInt8](contents.utf8), named: "key").withBytes { [UInt8]($0) }
        #expect(sent == Array([UInt8](contents.utf8).trimmed()))
    }
}

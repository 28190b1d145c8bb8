import Base
import TestSupport
import Testing

@testable import postern

/// `postern rpc call` against a server, and users that are named by email.
@Suite struct RPCCommandTests {
    @Test func `Any method is called with JSON`() async throws {
        try await withServer { server in
            try await withTemporaryDirectory { directory in
                func call(_ words: [String], _ request: String? = nil) async -> TestConsole.Outcome {
                    let file = "\(directory)/request"
                    if let request { writeFile(file, [UInt8](request.utf8)) }
                    return await TestConsole.run(["rpc", "call"] + words + (request == nil ? [] : [file]), on: server)
                }
                #expect(await call(["Tenants/Create"], #"{"tenant_id":"acme"}"#).code == .ok)
                let ann = #"{"uid":"u1","email":"ann@example.com","password":"secret1"}"#
                #expect(await call(["Users/Create", "-t", "acme"], ann).code == .ok)
                let counted = await call(["Users/Count", "-t", "acme"])
                #expect(counted.written == "{\n  \"count\": 1\n}\n", "\(counted)")
                let missing = await call(["Users/Get", "-t", "acme"], #"{"uid":"u2"}"#)
                #expect(missing.code == .notFound && missing.said.contains("USER_NOT_FOUND"))
                let exported = await call(["Users/Export", "-t", "acme"])
                #expect(exported.code == .ok && exported.written.contains("\"uid\":\"u1\""))
                let rows = "{\"users\":[{\"uid\":\"u2\"}]}\n{\"users\":[{\"uid\":\"u3\"}]}\n"
                let imported = await call(["Users/Import", "-t", "acme"], rows)
                #expect(imported.written.split(separator: "\n").count == 2, "\(imported)")
                #expect(imported.written.contains("\"created_count\":2"))
                let tried = await call(
                    ["Users/Delete", "-t", "acme", "--dry-run"], #"{"uid":"u1","validate_only":false}"#)
                #expect(tried.code == .ok, "\(tried)")
                #expect(await call(["Users/Get", "-t", "acme"], #"{"uid":"u1"}"#).code == .ok)
                #expect(await call(["Users/Count", "--dry-run"]).code == .usage)
                let wrong = await call(["Users/Get"], #"{"udi":""}"#)
                #expect(wrong.code == .usage && wrong.said.contains("did you mean uid?"))
                #expect(await call(["Users/Get"], "{").code == .usage)
            }
        }
    }

    /// The answers are above what a server sends to a client that reads none, and so are the requests after them.
    @Test func `The answers of a stream are read while its requests are sent`() async throws {
        try await withServer { server in
            try await withTemporaryDirectory { directory in
                let (file, requestCount) = ("\(directory)/requests", 50)
                let filler = String(repeating: "u", count: 120)
                let user = "{\"uid\":\"\(filler)\",\"email\":\"no email\"}"
                let users = [String](repeating: user, count: 200).joined(separator: ",")
                let requests = [String](repeating: "{\"users\":[\(users)]}\n", count: requestCount).joined()
                writeFile(file, [UInt8](requests.utf8))
                let test = TestConsole()
                let line = TestConsole.globals(for: server) + ["rpc", "call", "Users/Import", file]
                let console = test.console
                let running = Task { await CommandLineTool.run(line, in: console) }
                func answerCount() -> Int { test.writtenBytes.count { $0 == UInt8(ascii: "\n") } }
                do {
                    try await until("all requests are answered") { answerCount() == requestCount }
                } catch {
                    running.cancel()
                    throw error
                }
                let code = await running.value
                #expect(code == .ok, "\(test.said)")
            }
        }
    }

    @Test func `A call that may change something is asked about`() async {
        for (method, code) in [("Users/Delete", ExitCode.declined), ("Users/Get", .unavailable)] {
            let test = TestConsole(answers: ["n"])
            #expect(await test.run("rpc", "call", method, "--server", "127.0.0.1:1") == code, "\(method)")
        }
    }

    @Test func `A method's fields are described`() async {
        let test = TestConsole()
        #expect(await test.run("rpc", "describe", "Users/Get") == .ok)
        #expect(test.written.contains("postern.v1.UsersGetRequest") && test.written.contains("include_last_refresh"))
        let list = TestConsole()
        #expect(await list.run("rpc", "list", "-o", "csv", "--fields", "method,commands") == .ok)
        #expect(list.written.contains("postern.v1.Users/Get,user get user mfa list\r\n"))
    }

    @Test func `A user is named by uid, email or phone number`() async throws {
        try await withServer { server in
            func run(_ words: String...) async -> TestConsole.Outcome { await TestConsole.run(words, on: server) }
            let made = await run(
                "user", "create", "--uid", "u1", "--email", "ann@example.com", "--phone-number", "+14155550123")
            #expect(made.code == .ok)
            for name in ["u1", "ann@example.com", "ANN@example.com", "+14155550123"] {
                #expect(await run("user", "get", name, "-q").written == "u1\n", "\(name)")
                #expect(await run("user", "update", name, "--display-name", name).code == .ok)
                #expect(await run("session", "list", name).code == .ok)
                #expect(await run("user", "set-claims", name, "{}", "--dry-run").code == .ok)
            }
            // A uid may look like an email.
            #expect(await run("user", "create", "--uid", "x@y").code == .ok)
            #expect(await run("user", "get", "x@y", "-q").written == "x@y\n")
            #expect(await run("user", "delete", "nobody@example.com").code == .notFound)
            #expect(await run("user", "delete", "ann@example.com").code == .ok)
            #expect(await run("user", "get", "u1").code == .notFound)
        }
    }

    @Test func `A dry run changes nothing, by either name`() async throws {
        try await withServer { server in
            for flag in ["--dry-run", "--validate-only"] {
                let tried = await TestConsole.run(["tenant", "create", "acme", flag], on: server)
                #expect(tried.code == .ok)
                #expect(await TestConsole.run(["tenant", "get", "acme"], on: server).code == .notFound)
            }
        }
    }

    @Test func `A code of a mail is looked at and used`() async throws {
        try await withServer { server in
            try await withTemporaryDirectory { directory in
                func run(_ words: [String]) async -> TestConsole.Outcome { await TestConsole.run(words, on: server) }
                writeFile("\(directory)/pw", [UInt8]("another-secret".utf8))
                #expect(await run(["user", "create", "--email", "ann@example.com"]).code == .ok)
                #expect(
                    await run(["account", "send-code", "password-reset", "--email", "ann@example.com"]).code == .ok)
                let link = await run(["user", "oob-link", "password-reset", "ann@example.com", "-q"]).written
                let code = link.split(whereSeparator: { "?&\n".contains($0) }).first { $0.hasPrefix("oobCode=") }
                let value = String(try #require(code).dropFirst("oobCode=".count))
                let checked = await run(["account", "check-code", value, "-o", "ndjson"])
                #expect(checked.written.contains("ann@example.com"), "\(checked)")
                let reset = await run(["account", "reset-password", value, "--password-file", "\(directory)/pw"])
                #expect(reset.code == .ok, "\(reset)")
                let signIn = ["account", "sign-in", "--email", "ann@example.com", "--password-file", "\(directory)/pw"]
                let tokens = await run(signIn + ["-o", "json", "--fields", "tokens.id_token"])
                let token = tokens.written.split(separator: "\"").first { $0.count > 200 }.map(String.init)
                let cookie = await run(["token", "create-cookie", try #require(token), "--valid-for", "1h", "-q"])
                #expect(cookie.code == .ok, "\(cookie)")
                let text = String(cookie.written.dropLast())
                #expect(await run(["token", "verify-cookie", text]).code == .ok)
                #expect(await run(["account", "apply-code", value]).code != .ok)
            }
        }
    }
}

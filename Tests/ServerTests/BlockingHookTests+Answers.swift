import Base
import Identity
import Reactor
import Synchronization
import TestSupport
import Testing

@testable import Service

/// Answers that cannot be used, and endpoints that do not answer.
extension BlockingHookTests {
    private static func answer(_ body: String, status: Int = 200) -> FakeHTTPServer.Reply {
        answer([UInt8](body.utf8), status: status)
    }

    private static func answer(_ body: [UInt8], status: Int = 200) -> FakeHTTPServer.Reply {
        .response(HTTPResponse(status: status, contentType: "application/json", fields: [], body: body))
    }

    /// A refusal whose message ends within a character.
    private static var cutRefusal: [UInt8] {
        var body = [UInt8](#"{"allow":false,"message":"Not "#.utf8)
        body += [0xF0, 0x9F]
        body += [UInt8](#""}"#.utf8)
        return body
    }

    private static func raw(_ text: String) -> FakeHTTPServer.Reply { .raw([UInt8](text.utf8)) }

    /// The first half of a surrogate pair is what `name.slice(0, 12)` makes of some names. A hook that repeats it
    /// refuses with a body that is no JSON of RFC 8259.
    private static let flawedRefusals: [(name: String, reply: FakeHTTPServer.Reply)] = [
        ("a lone surrogate", answer(#"{"allow":false,"message":"Not \ud83d"}"#)),
        ("NUL", answer(#"{"allow":false,"message":"Not \u0000"}"#)),
        ("a control character", answer("{\"allow\":false,\"message\":\"Not \u{1}\"}")),
        ("a quotation mark", answer(#"{"allow":false,"message":"Not "Ann""}"#)),
        ("no UTF-8", answer(cutRefusal)),
        ("a byte order mark", answer("\u{FEFF}{\"allow\":false}")),
        ("a member twice", answer(#"{"allow":false,"message":"a","message":"b"}"#)),
        ("both decisions", answer(#"{"allow":true,"allow":false}"#)),
        ("a number too large", answer(#"{"allow":false,"score":1e999}"#)),
        ("nested too deep", answer(#"{"allow":false,"a":[[[[[[[[9]]]]]]]]}"#)),
        ("17 KiB", answer(#"{"allow":false,"a":"\#(String(repeating: "x", count: 17 * 1024))"}"#)),
        ("without an end", .flood(1 << 20)),
        ("something behind it", answer(#"{"allow":false}{}"#)),
        ("a length too small", raw("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"allow\":false}")),
        ("a length too great", raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"allow\":false}")),
        ("never whole", .silence),
        ("empty", answer("")),
        ("204", answer("", status: 204)),
        ("201", answer("no", status: 201)),
        ("no object", answer("false")),
        ("a text", answer(#"{"allow":"no"}"#)),
        ("no decision", answer("{}")),
    ]

    @Test func `An answer that cannot be read refuses, also where failures let sign-ins go on`() async throws {
        let lines = Mutex<[String]>([])
        let log = Log(level: .warning) { line in
            lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
        }
        try await Self.run(log: log) { scene in
            _ = try scene.identity.signUp("ann@example.com")
            try scene.update(["before_sign_in"], allowOnFailure: true, timeoutMillis: 2_000)
            for flawed in Self.flawedRefusals {
                scene.script.set("before_sign_in", flawed.reply)
                let refused = failure { _ = try scene.identity.signIn("ann@example.com") }
                #expect(refused.reason == "HOOK_FAILED", "\(flawed.name)")
            }
            let counts = scene.identity.server.project.hookFailures.counts
            let failed = counts.filter { $0.count > 0 }.map { "\($0.cause.rawValue) \($0.count)" }
            #expect(failed == ["answer \(Self.flawedRefusals.count)"])
            let page = String(decoding: scene.identity.server.instance.prometheusText(), as: UTF8.self)
            #expect(page.contains(#"postern_hook_failures_total{cause="answer"} \#(Self.flawedRefusals.count)"#))
        }
        let said = lines.withLock { $0 }.filter { $0.contains("a hook failed") }
        #expect(said.first?.contains("JSON: not well formed at line 1") == true, "\(said.first ?? "no line")")
        #expect(said.allSatisfy { $0.contains(#""cause":"answer""#) && $0.contains(#""sign_in":"refused""#) })
    }

    @Test func withoutAnAnswerThatCanBeUsedSignInsAreRefused() async throws {
        try await Self.run { scene in
            _ = try scene.identity.signUp("ann@example.com")
            let answers = [
                "{}", #"{"allow":"yes"}"#, #"{"allow":true,"custom_claims":{"sub":"eve"}}"#,
                #"{"allow":true,"session_claims":[]}"#, #"{"allow":true,"disabled":"no"}"#,
                #"{"allow":true,"message":7}"#, #"{"allow":true,"display_name":7}"#,
            ]
            for isOpen in [false, true] {
                try scene.update(["before_sign_in"], allowOnFailure: isOpen, timeoutMillis: 2_000)
                for answer in answers {
                    scene.script.set("before_sign_in", answer)
                    let refused = failure { _ = try scene.identity.signIn("ann@example.com") }
                    #expect(refused.reason == "HOOK_FAILED", "\(answer) \(isOpen)")
                }
            }
        }
    }

    @Test func withoutAnAnswerSignInsAreRefusedUnlessTheHookSaysOtherwise() async throws {
        try await Self.run { scene in
            _ = try scene.identity.signUp("ann@example.com")
            let long = String(repeating: " ", count: 17 * 1024)
            let allowed = #"{"allow":true}"#
            let replies: [(name: String, reply: FakeHTTPServer.Reply)] = [
                ("500", Self.answer(allowed, status: 500)), ("a long page of 502", Self.answer(long, status: 502)),
                ("404", Self.answer("", status: 404)), ("a redirection", Self.answer("", status: 302)),
                ("no HTTP", Self.raw("\u{0}\r\n\r\n")), ("too slow", .nothing),
            ]
            for isOpen in [false, true] {
                let wanted = isOpen ? "" : "HOOK_FAILED"
                try scene.update(["before_sign_in"], allowOnFailure: isOpen, timeoutMillis: 1_000)
                for expected in replies {
                    scene.script.set("before_sign_in", expected.reply)
                    let refused = failure { _ = try scene.identity.signIn("ann@example.com") }
                    #expect(refused.reason == wanted, "\(expected.name) \(isOpen)")
                }
                // An endpoint that nobody runs.
                try scene.update(["before_sign_in"], allowOnFailure: isOpen, url: "http://127.0.0.1:1/")
                let refused = failure { _ = try scene.identity.signIn("ann@example.com") }
                #expect(refused.reason == wanted, "nobody \(isOpen)")
            }
        }
    }
}

import Base
import Glibc
import JSON
import TestSupport
import Testing

@testable import postern

/// Commands that are cut short by a signal, or whose output nobody reads any more.
@Suite struct InterruptionTests {
    /// Runs `body` with a server, and with a proxy to it that keeps back the answer to the next request of a method.
    /// Of a stream, `messageCount` messages get through. Answers to other calls get through, too.
    private func withHeldServer(
        _ method: String, after messageCount: Int = 0, _ body: (TestServer, CuttingProxy) async throws -> Void
    ) async throws {
        try await withServer { server in
            let proxy = CuttingProxy(target: server.port, methods: [method])
            defer { proxy.stop() }
            proxy.holdNextAnswer(to: method, after: messageCount)
            try await body(server, proxy)
        }
    }

    /// A command line for the server behind the proxy.
    private func words(_ words: [String], _ server: TestServer, through proxy: CuttingProxy) -> [String] {
        var globals = TestConsole.globals(for: server)
        if let place = globals.firstIndex(of: "127.0.0.1:\(server.port)") { globals[place] = proxy.address }
        return globals + ["--timeout", "60s"] + words
    }

    private func apiKey(on server: TestServer) async throws -> String {
        let made = await TestConsole.run(
            ["apikey", "create", "--role", "app", "--all-tenants", "-o", "json"], on: server)
        let json = try JSONValue(parsing: [UInt8](made.written.utf8))
        return try #require(json["api_key"]?["api_key_id"]?.string)
    }

    @Test func `A rotation that is cancelled says that its answer is lost, and leaves no file`() async throws {
        try await withTemporaryDirectory { directory in
            try await withHeldServer("RotateApiKey") { server, proxy in
                let (file, test) = ("\(directory)/new.key", TestConsole())
                let id = try await apiKey(on: server)
                let rotate = ["apikey", "rotate", id, "--key-out", file]
                let (line, console) = (words(rotate, server, through: proxy), test.console)
                let command = Task { await CommandLineTool.run(line, in: console) }
                try await until { proxy.requestCount("RotateApiKey") == 1 }
                #expect(!File.exists(file), "an empty file looks like a key")
                command.cancel()
                let code = await command.value
                let left = fileNames(in: directory)
                #expect(code == .interrupted && left.isEmpty, "\(left) \(test.said)")
                #expect(test.said.contains("hint: a change may have been made all the same"), "\(test.said)")
                #expect(test.said.contains("hint: do not rotate again"), "\(test.said)")
            }
        }
    }

    /// A second signal ends a command as SIGKILL does: without a chance to remove anything.
    @Test func `A command that was killed while its key was made is not in the way of the next one`() async throws {
        try await withTemporaryDirectory { directory in
            try await withHeldServer("RotateApiKey") { server, proxy in
                let file = "\(directory)/new.key"
                let id = try await apiKey(on: server)
                let rotate = ["apikey", "rotate", id, "--key-out", file]
                let process = try ChildProcess(
                    ChildProcess.built("postern"), words(rotate, server, through: proxy))
                try await until { proxy.requestCount("RotateApiKey") == 1 }
                process.kill()
                #expect(!File.exists(file), "an empty file looks like a key")
                proxy.release()
                let again = await TestConsole.run(rotate, on: server)
                #expect(again.code == .ok, "\(again.said)")
                #expect((readFile(file) ?? []).starts(with: [UInt8]("pk_".utf8)))
            }
        }
    }

    @Test func `A watch ends without a word`() async throws {
        try await withHeldServer("WatchEvents") { server, proxy in
            let test = TestConsole()
            let (line, console) = (words(["audit", "watch", "--after", "-1"], server, through: proxy), test.console)
            let watch = Task { await CommandLineTool.run(line, in: console) }
            try await until { proxy.requestCount("WatchEvents") == 1 }
            watch.cancel()
            let code = await watch.value
            #expect(code == .interrupted && test.said.isEmpty, "\(test.said)")
        }
    }

    /// The calls before `method` are answered.
    @Test(
        arguments: [
            (["user", "export"], "Export"), (["audit", "export"], "ListEvents"), (["backup", "create"], "Backup"),
        ])
    func `A file that was begun is removed without a word`(command: [String], method: String) async throws {
        try await withTemporaryDirectory { directory in
            try await withHeldServer(method) { server, proxy in
                let test = TestConsole()
                let format = method == "Export" ? ["--format", "ndjson"] : []
                let line = words(command + ["\(directory)/new"] + format, server, through: proxy)
                let console = test.console
                let running = Task { await CommandLineTool.run(line, in: console) }
                // Each command opens its file before it calls.
                try await until { proxy.requestCount(method) == 1 }
                running.cancel()
                let code = await running.value
                let left = fileNames(in: directory)
                #expect(code == .interrupted && test.said.isEmpty && left.isEmpty, "\(left) \(test.said)")
            }
        }
    }

    @Test func `An export that is cut short after its first users keeps them, and goes on`() async throws {
        try await withTemporaryDirectory { directory in
            try await withHeldServer("Export", after: 1) { server, proxy in
                let (file, whole) = ("\(directory)/new.ndjson", "\(directory)/whole.ndjson")
                let users = "\(directory)/users.ndjson"
                writeFile(users, (0..<250).flatMap { [UInt8]("{\"uid\":\"u\($0)\"}\n".utf8) })
                #expect(await TestConsole.run(["user", "import", users], on: server).code == .ok)
                let test = TestConsole()
                let (line, console) = (words(["user", "export", file], server, through: proxy), test.console)
                let running = Task { await CommandLineTool.run(line, in: console) }
                try await until { File.exists("\(file).resume") }
                running.cancel()
                let code = await running.value
                #expect(code == .interrupted && File.exists(file), "\(test.said)")
                #expect(test.said.contains("the same command with --resume goes on"), "\(test.said)")
                proxy.release()
                let rest = TestConsole()
                #expect(await CommandLineTool.run(line + ["--resume"], in: rest.console) == .ok, "\(rest.said)")
                #expect(await TestConsole.run(["user", "export", whole], on: server).code == .ok)
                #expect(readFile(file) == readFile(whole) && !File.exists("\(file).resume"))
            }
        }
    }

    /// Otherwise `--resume` would take the place of another file for the new one's.
    @Test func `A new export removes the place that an earlier one left`() async throws {
        try await withTemporaryDirectory { directory in
            try await withHeldServer("Export") { server, proxy in
                let file = "\(directory)/new.ndjson"
                writeFile("\(file).resume", [UInt8]("{}".utf8))
                let test = TestConsole()
                let (line, console) = (words(["user", "export", file], server, through: proxy), test.console)
                let running = Task { await CommandLineTool.run(line, in: console) }
                try await until { proxy.requestCount("Export") == 1 }
                #expect(File.exists(file) && !File.exists("\(file).resume"))
                running.cancel()
                let code = await running.value
                let left = fileNames(in: directory)
                #expect(code == .interrupted && left.isEmpty, "\(left) \(test.said)")
            }
        }
    }

    @Test func `A signal ends the process after the command has told what it leaves`() async throws {
        try await withTemporaryDirectory { directory in
            try await withHeldServer("RotateApiKey") { server, proxy in
                let (file, said) = ("\(directory)/new.key", "\(directory)/said")
                let id = try await apiKey(on: server)
                let rotate = ["apikey", "rotate", id, "--key-out", file]
                let process = try ChildProcess(
                    ChildProcess.built("postern"), words(rotate, server, through: proxy), output: said)
                // The command calls after the signals are listened to.
                try await until { proxy.requestCount("RotateApiKey") == 1 }
                process.send(signal: SIGTERM)
                let status = process.wait(seconds: 60)
                let text = String(decoding: readFile(said) ?? [], as: UTF8.self)
                // The status of a process that a signal ended, for a shell 143.
                let left = fileNames(in: directory)
                #expect(status == -1 && left == ["said"], "\(left) \(text)")
                #expect(text.contains("hint: do not rotate again"), "\(text)")
            }
        }
    }

    @Test func `A command whose reader has left goes on, and fails at its end`() throws {
        try withTemporaryDirectory { directory in
            // The reader has left before the program writes.
            let script = "{ sleep 0.3; \"$0\" help reference; echo \"status $?\" >&2; } | true; wait"
            let said = "\(directory)/said"
            let process = try ChildProcess(
                "bash", ["-c", script, ChildProcess.built("postern")], output: said)
            _ = process.wait(seconds: 60)
            #expect(readFile(said) == [UInt8]("status 1\n".utf8))
        }
    }
}

import Base
import Glibc
import Messages
import TestSupport
import Testing

/// Programs that are started without standard output or standard error.
@Suite struct ClosedDescriptorsTests {
    @Test func `A server without standard output and error writes its logs into no file of its directory`() throws {
        try withTemporaryDirectory { directory in
            let (data, port) = ("\(directory)/data", try freePort())
            let command = """
                exec "$0" --data-directory "$1" --listen-address "127.0.0.1:$2" --http-address off \
                --signing-algorithm ES256 --access-log stdout 1>&- 2>&-
                """
            let server = try ChildProcess(
                "bash", ["-c", command, ChildProcess.built("posternd"), data, "\(port)"])
            defer { server.kill() }
            try blockUntilServing(port: port)
            let client = try RawClient(port: port)
            client.apiKey = try CrashTests.adminKey(data)
            _ = try client.call(
                "postern.v1.Project/Stats", ProjectStatsRequest(), returning: ProjectStatsResponse.self)
            server.send(signal: SIGTERM)
            #expect(server.wait(seconds: 30) == 0)
            // The first file that a server opens.
            #expect(readFile("\(data)/lock")?.isEmpty == true)
        }
    }

    @Test func `A command without standard output says so, and fails`() throws {
        try withTemporaryDirectory { directory in
            let said = "\(directory)/said"
            let command = try ChildProcess(
                "bash", ["-c", "exec \"$0\" --version 1>&-", ChildProcess.built("postern")], output: said)
            #expect(command.wait(seconds: 20) == 1)
            let message = String(decoding: readFile(said) ?? [], as: UTF8.self)
            #expect(message.contains("standard output"), "\(message)")
        }
    }
}

import Base
import TestSupport
import Testing

@testable import postern

/// Several servers of which one answers, given by a flag, the environment or a context.
@Suite struct SeveralServersTests {
    @Test(arguments: ["flag", "environment", "context"])
    func `A command goes to the server that works`(place: String) async throws {
        try await withServer { server in
            try await withTemporaryDirectory { directory in
                let servers = "127.0.0.1:1,127.0.0.1:\(server.port)"
                let keyFile = "\(directory)/key"
                writeFile(keyFile, server.adminKey.withBytes { [UInt8]($0) })
                var environment = ["HOME": "/nonexistent", "XDG_CONFIG_HOME": directory]
                var words = ["tenant", "create", "acme"]
                switch place {
                case "flag": words += ["--server", servers, "--key-file", keyFile]
                case "environment":
                    environment["POSTERN_SERVER"] = servers
                    environment["POSTERN_KEY_FILE"] = keyFile
                default:
                    let add = TestConsole(environment: environment)
                    #expect(
                        await add.run(
                            "context", "add", "both", "--server", servers, "--key-file", keyFile, "--tenant", "acme")
                            == .ok)
                }
                let test = TestConsole(environment: environment)
                #expect(await CommandLineTool.run(words, in: test.console) == .ok, "\(test.said)")
                #expect(test.said.contains("on \(servers)"))
            }
        }
    }

    /// Keys and tenants belong to the whole list of servers that they were set for.
    @Test func `Another list of servers is another place`() async throws {
        try await withTemporaryDirectory { directory in
            let environment = ["HOME": "/nonexistent", "XDG_CONFIG_HOME": directory]
            let add = TestConsole(environment: environment)
            #expect(await add.run("context", "add", "a", "--server", "127.0.0.1:1,127.0.0.1:2", "-t", "acme") == .ok)
            let same = TestConsole(environment: environment)
            _ = await same.run("user", "create", "--uid", "x", "--server", "127.0.0.1:1,127.0.0.1:2")
            #expect(same.said.contains("tenant acme"))
            let other = TestConsole(environment: environment)
            _ = await other.run("user", "create", "--uid", "x", "--server", "127.0.0.1:1")
            #expect(other.said.contains("not used: tenant acme") && !other.said.contains(", tenant acme"))
        }
    }
}

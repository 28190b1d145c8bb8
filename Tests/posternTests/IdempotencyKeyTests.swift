import Base
import PosternClient
import TestSupport
import Testing

@testable import postern

/// The idempotency keys that commands send, so that the channel may repeat a call whose answer was lost.
@Suite struct IdempotencyKeyTests {
    private func session(_ command: Command, _ arguments: Arguments = Arguments()) throws -> Session {
        try Session(
            arguments, console: TestConsole().console, isReadOnly: command.isReadOnly,
            sendsIdempotencyKeys: command.sendsIdempotencyKeys)
    }

    @Test func `Each call of a command that changes something has a key of its own`() throws {
        let session = try session(APIKeyCommands.rotate)
        let keys = try (0..<3).map { _ in try session.callOptions().idempotencyKey }
        #expect(Set(keys).count == 3)
        #expect(keys.allSatisfy { (16...256).contains($0.byteCount) && Hex.decode($0.bytes) == nil })
        #expect(try session.callOptions(withKey: false).idempotencyKey.isEmpty)
    }

    @Test func `What changes nothing, and what an end user does, has no key`() throws {
        #expect(try session(APIKeyCommands.list).callOptions().idempotencyKey.isEmpty)
        let trial = try session(APIKeyCommands.rotate, Arguments(switches: ["dry-run"]))
        #expect(try trial.callOptions().idempotencyKey.isEmpty)
        let signIn = try #require(CommandTree.commands.first { $0.name == "account sign-in" })
        #expect(try session(signIn).callOptions().idempotencyKey.isEmpty)
    }

    @Test func `A change with a key is made, and a key on a call that only reads means nothing`() async throws {
        try await withServer { server in
            let made = await TestConsole.run(["tenant", "create", "acme", "-q"], on: server)
            #expect(made.code == .ok, "\(made)")
            let called = await TestConsole.run(["-t", "acme", "rpc", "call", "Users/Count"], on: server)
            #expect(called.code == .ok, "\(called)")
        }
    }
}

import Base
import Glibc
import Messages
import PosternClient
import Synchronization
import TestSupport
import Testing

@testable import PosternVerifier

/// A feed on which nothing comes, though its connection lives.
@Suite(.timeLimit(.minutes(3))) struct SilentFeedTests {
    /// A server that answers HELLO and no call.
    private final class SilentServer: Sendable {
        private let count = Atomic(0)

        /// The number of calls that came.
        var callCount: Int { count.load(ordering: .acquiring) }

        /// The client's end of a new connection.
        func makeConnection() throws(Failure) -> Int32 {
            var ends: [Int32] = [-1, -1]
            guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else {
                throw Failure(.connectionFailed, "There is no socket.")
            }
            let own = ends[1]
            guard (try? OSThread.startDetached(name: "silent") { self.serve(own) }) != nil else {
                throw Failure(.connectionFailed, "There is no thread.")
            }
            return ends[0]
        }

        private func serve(_ own: Int32) {
            defer { close(own) }
            // An empty RESPONSE on stream 0: the answer to HELLO of a server that speaks ttrpc only.
            let answer: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 2, 0]
            guard send(own, answer, answer.count, Int32(MSG_NOSIGNAL)) == answer.count else { return }
            while let header = Self.read(10, from: own) {
                let byteCount = header[..<4].reduce(0) { $0 << 8 | Int($1) }
                guard Self.read(byteCount, from: own) != nil else { return }
                if header[8] == 1 { count.add(1, ordering: .acquiringAndReleasing) }
            }
        }

        private static func read(_ byteCount: Int, from socket: Int32) -> [UInt8]? {
            var bytes: [UInt8] = []
            while bytes.count < byteCount {
                var chunk = [UInt8](repeating: 0, count: byteCount - bytes.count)
                let count = recv(socket, &chunk, chunk.count, 0)
                guard count > 0 else { return nil }
                bytes += chunk[..<count]
            }
            return bytes
        }
    }

    private static func channel(_ server: SilentServer) throws -> Channel {
        let transport = ChannelTransport(name: "silent") { () throws(Failure) in try server.makeConnection() }
        return try Channel(transport: transport, credentials: .none)
    }

    private static func source(_ channel: Channel) -> VerifierSource {
        VerifierSource(channel: channel, options: VerifierOptions(), firstMessageMax: .milliseconds(50))
    }

    @Test func `The first feed that says nothing is an error`() async throws {
        let channel = try Self.channel(SilentServer())
        let source = Self.source(channel)
        let followed = FollowedRevocations(retention: .hours(2), at: .nowWithSleep)
        let failure = await #expect(throws: Failure.self) { try await source.begin(followed) }
        #expect(failure?.reason == "STREAM_ENDED" && failure?.code == .unavailable)
        await channel.shutdown()
    }

    @Test func `A feed that falls silent is opened again`() async throws {
        let server = SilentServer()
        let channel = try Self.channel(server)
        let source = Self.source(channel)
        let followed = FollowedRevocations(retention: .hours(2), at: .nowWithSleep)
        let stream = try await TokensClient(channel: channel).watchRevocations(TokensWatchRevocationsRequest())
        let first = FeedStream(stream, firstMax: .milliseconds(50), laterMax: .milliseconds(50))
        let follower = Task { await source.keepFollowing(followed, first) {} }
        try await until("the feed is opened again") { server.callCount >= 3 }
        follower.cancel()
        await follower.value
        await channel.shutdown()
    }
}

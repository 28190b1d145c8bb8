import Base
import Messages
import Service
import Synchronization
import TestSupport
import Testing
import Wire

/// Every request that is sent after a change was acknowledged sees the change, on any connection. So do requests that
/// come many at once and share a snapshot, and requests with tokens that were verified before.
@Suite struct AcknowledgedChangeTests {
    fileprivate struct Session {
        let id: Text
        let idToken: Text
        var isOver = false
    }

    /// The state of a user after the changes that were acknowledged.
    fileprivate struct Expected {
        var displayName: Text = .empty
        var isDisabled = false
        var sessions: [Session] = []
    }

    /// A connection that sends many requests in one piece.
    private struct Reader {
        let client: RawClient

        /// The answers, in the order of the requests.
        func ask(_ requests: [(name: String, message: any Message)]) throws -> [RawClient.Frame] {
            var bytes: [UInt8] = []
            var streams: [UInt32] = []
            for request in requests {
                let stream = client.nextStream()
                streams.append(stream)
                bytes += client.request(request.name, request.message, stream: stream)
            }
            try client.send(bytes)
            let frames = try streams.map { _ in try client.readFrame() }
            return streams.compactMap { stream in frames.first { $0.header.stream == stream } }
        }
    }

    @Test func `Every connection sees what was acknowledged`() async throws {
        var random = SeededRandom.printed()
        try await withServer { server in
            let writer = try IdentityClient(server)
            let readers = try (0..<4).map { _ in Reader(client: try server.connect()) }
            let uid: Text = "ada"
            let _: UsersCreateResponse = try writer.client.call(
                "postern.v1.Users/Create",
                UsersCreateRequest(uid: uid, email: "ada@example.com", password: Secret("correct horse")))
            let noise = try Noise(server, uid: uid)
            defer { noise.end() }
            var expected = Expected()
            for step in 0..<150 {
                try change(&expected, uid, writer, step, &random)
                for reader in readers { try check(expected, uid, reader, step) }
            }
        }
    }

    private func change(
        _ expected: inout Expected, _ uid: Text, _ writer: IdentityClient, _ step: Int, _ random: inout SeededRandom
    ) throws {
        writer.server.clock.advance(by: .milliseconds(1))
        switch random.below(6) {
        case 0:
            expected.displayName = Text("name \(step)")
            try writer.update(uid, ["display_name"]) { $0.displayName = Text("name \(step)") }
        case 1:
            let disables = !expected.isDisabled
            expected.isDisabled = disables
            if disables { expected.endSessions { _ in true } }
            try writer.update(uid, ["disabled"]) { $0.disabled = disables }
        case 2:
            expected.endSessions { _ in true }
            _ = try RevocationTests.revoke(writer, uid)
        case 3:
            guard let session = expected.sessions.last(where: { !$0.isOver }) else { return }
            expected.endSessions { $0.id == session.id }
            let _: UsersRevokeSessionResponse = try writer.client.call(
                "postern.v1.Users/RevokeSession", UsersRevokeSessionRequest(uid: uid, sessionID: session.id))
        default:
            guard !expected.isDisabled else { return }
            let signedIn = try writer.signIn("ada@example.com")
            let idToken = try #require(signedIn.tokens).idToken
            let verified: TokensVerifyIdTokenResponse = try writer.client.call(
                "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: idToken))
            expected.sessions.append(Session(id: verified.sessionID, idToken: idToken))
            expected.sessions = Array(expected.sessions.suffix(4))
        }
    }

    private func check(_ expected: Expected, _ uid: Text, _ reader: Reader, _ step: Int) throws {
        var requests: [(name: String, message: any Message)] = [
            ("postern.v1.Users/Get", UsersGetRequest(uid: uid))
        ]
        for session in expected.sessions {
            requests.append(("postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: session.idToken)))
        }
        requests.append(requests[0])
        let frames = try reader.ask(requests)
        try #require(frames.count == requests.count)
        for frame in [frames[0], frames[frames.count - 1]] {
            let user = try RawClient.response(frame, returning: UsersGetResponse.self).user
            #expect(user?.displayName == expected.displayName, "step \(step)")
            #expect(user?.disabled == expected.isDisabled, "step \(step)")
        }
        for (session, frame) in zip(expected.sessions, frames.dropFirst()) {
            let reason = failure { _ = try RawClient.response(frame, returning: TokensVerifyIdTokenResponse.self) }
                .reason
            let wanted = expected.isDisabled ? "USER_DISABLED" : session.isOver ? "TOKEN_EXPIRED" : ""
            #expect(reason == wanted, "step \(step)")
        }
    }

    /// Batches of requests on connections of their own, so that at every moment some loop reads in a shared snapshot.
    private final class Noise: Sendable {
        private let isEnding = Atomic(false)
        private let threads: Mutex<[OSThread]>

        init(_ server: TestServer, uid: Text) throws {
            threads = Mutex([])
            for _ in 0..<2 {
                let client = Mutex(try server.connect())
                let thread = OSThread(name: "noise") { [self] in
                    client.withLock { client in
                        let reader = Reader(client: client)
                        while !isEnding.load(ordering: .relaxed) {
                            let many = Array(
                                repeating: ("postern.v1.Users/Get", UsersGetRequest(uid: uid) as any Message), count: 64
                            )
                            guard (try? reader.ask(many)) != nil else { return }
                        }
                    }
                }
                threads.withLock { $0.append(thread) }
            }
        }

        func end() {
            isEnding.store(true, ordering: .relaxed)
            for thread in threads.withLock({ $0 }) { thread.join() }
        }
    }
}

extension AcknowledgedChangeTests.Expected {
    fileprivate mutating func endSessions(_ isEnded: (AcknowledgedChangeTests.Session) -> Bool) {
        for index in sessions.indices where isEnded(sessions[index]) { sessions[index].isOver = true }
    }
}

import Base
import Messages
import PosternClient
import TestSupport
import Testing

/// Channels to the servers of a cluster.
@Suite struct ClusterChannelTests {
    /// A channel whose calls go to both servers in turn.
    private func withChannel(
        _ change: (inout ChannelOptions) -> Void = { _ in }, _ body: (UsersClient) async throws -> Void
    ) async throws {
        try await withTwoServers { first, second in
            var options = ChannelOptions()
            options.loadBalancing = .roundRobin
            change(&options)
            let channel = try Channel(
                address: "127.0.0.1:\(first.port),127.0.0.1:\(second.port)", credentials: .apiKey(first.adminKey),
                options: options)
            do {
                try await body(UsersClient(channel: channel))
            } catch {
                await channel.shutdown()
                throw error
            }
            await channel.shutdown()
        }
    }

    /// Makes ten changes, and counts the reads right after them that miss the change.
    private func missedChanges(_ users: UsersClient, options: CallOptions = .init()) async throws -> Int {
        let made = try await users.create(UsersCreateRequest(email: "ada@example.com"))
        let uid = try #require(made.user).uid
        var missedCount = 0
        for round in 0..<10 {
            let url = Text("https://example.com/\(round)")
            _ = try await users.update(
                UsersUpdateRequest(uid: uid, updateMask: ProtobufFieldMask(paths: ["photo_url"]), photoURL: url))
            // One read for each server.
            for _ in 0..<2 {
                let user = try await users.get(UsersGetRequest(uid: uid), options: options).user
                if user?.photoURL != url { missedCount += 1 }
            }
        }
        return missedCount
    }

    @Test func aChannelReadsItsOwnWritesOnEachServer() async throws {
        try await withChannel { users in
            let missed = try await missedChanges(users)
            #expect(missed == 0)
        }
    }

    @Test func withoutItASecondServerAnswersFromWhatItHas() async throws {
        try await withChannel({ $0.readsOwnWrites = false }) { users in
            let missed = try await missedChanges(users)
            #expect(missed > 0)
        }
    }

    @Test func aCallMayWantTheLatest() async throws {
        try await withChannel({ $0.readsOwnWrites = false }) { users in
            let missed = try await missedChanges(users, options: CallOptions(readsLatest: true))
            #expect(missed == 0)
        }
    }
}

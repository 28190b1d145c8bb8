import Base
import Messages
import PosternClient
import Synchronization
import TestSupport
import Testing

@testable import PosternAdmin

/// When a feed opens its stream again.
@Suite(.timeLimit(.minutes(2))) struct ResumedFeedTests {
    /// How a feed ends whose streams are refused for these reasons, one after the other, and how often it opened one.
    private static func end(after refusals: [Failure]) async -> String {
        let openedCount = Mutex(0)
        let records = ResumedFeed<TenantsWatchDenialsResponse, Denial>(
            after: 7, options: CallOptions(),
            list: { _ in preconditionFailure("a feed with a start asks for no list") },
            open: { _, _ throws(Failure) in
                let number = openedCount.withLock { count in
                    count += 1
                    return count
                }
                throw refusals[number - 1]
            },
            read: { $0.denial })
        var feed = records.makeIterator()
        let ended = await reason { () throws(Failure) in _ = try await feed.next() }
        return "\(ended) \(openedCount.withLock { $0 })"
    }

    @Test func `A journal position that is refused is forgotten, and the stream asked for once more`() async {
        let elsewhere = Failure(.invalidArgument, "INVALID_POSITION", "Of another cluster.")
        let gone = Failure(.notFound, "TENANT_NOT_FOUND", "Gone.")
        let away = Failure(.unavailable, "NODE_BEHIND", "Later.")
        #expect(await Self.end(after: [elsewhere, gone]) == "TENANT_NOT_FOUND 2")
        #expect(await Self.end(after: [elsewhere, elsewhere]) == "INVALID_POSITION 2")
        #expect(await Self.end(after: [away, elsewhere, away, gone]) == "TENANT_NOT_FOUND 4")
    }

    @Test func `After a restore, a feed that would begin behind the newest record is refused`() async throws {
        try await AdminScene.run { scene in
            _ = try await scene.tenant.createUser(email: "ada@example.com")
            let newest = try await scene.tenant.listEvents(pageSize: 1).all().first?.sequence ?? 0
            for (after, wanted) in [(newest + 1_000, "INVALID_SEQUENCE"), (newest - 1, "")] {
                let found = await reason { () throws(Failure) in
                    var feed = scene.tenant.watchEvents(after: after).makeAsyncIterator()
                    _ = try await feed.next()
                }
                #expect(found == wanted)
            }
            let denials = await reason { () throws(Failure) in
                var feed = scene.tenant.watchDenials(after: 1).makeAsyncIterator()
                _ = try await feed.next()
            }
            #expect(denials == "INVALID_SEQUENCE")
        }
    }
}

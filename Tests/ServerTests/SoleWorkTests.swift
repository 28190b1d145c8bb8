import Base
import Testing

@testable import Service

@Suite struct SoleWorkTests {
    @Test func workIsNotBegunWhileItRuns() async throws {
        let (work, begun, opened) = (SoleWork(), Promise<Void>(), Promise<Void>())
        let first = Task {
            await work.run {
                begun.succeed(())
                try? await opened.value()
            }
        }
        try await begun.value()
        let isBegunTwice = await work.run { Issue.record("begun twice") }
        opened.succeed(())
        let isFirstDone = await first.value
        let isBegunAgain = await work.run {}
        #expect(!isBegunTwice && isFirstDone && isBegunAgain)
    }
}

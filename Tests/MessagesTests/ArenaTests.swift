import Base
import Testing

@testable import Messages

@Suite struct ArenaTests {
    private func withArena(_ body: (Arena) -> Void) {
        let arena = Arena()
        body(arena)
        arena.destroy()
    }

    @Test func `memory is aligned, does not overlap and ends with the budget`() {
        withArena { arena in
            arena.begin(budget: 24)
            let first = arena.allocate(1)
            let second = arena.allocate(9)
            #expect(first.map { UInt(bitPattern: $0) % 8 } == 0)
            #expect(second == first.map { $0 + 8 })
            #expect(!arena.isSpent)
            #expect(arena.allocate(1) == nil)
            #expect(arena.isSpent)
        }
    }

    @Test func `an allocation as large as the budget is given, one byte more is not`() {
        withArena { arena in
            arena.begin(budget: 100_000)
            #expect(arena.allocate(100_001) == nil)
            #expect(arena.allocate(100_000) != nil)
        }
    }

    @Test func `a large message's memory goes back to the system`() {
        withArena { arena in
            arena.begin(budget: .max)
            for _ in 0..<1_000 { _ = arena.allocate(1_000) }
            #expect(arena.reservedByteCount >= 1_000_000)
            arena.reset(wiping: false)
            #expect(arena.reservedByteCount == Arena.keptByteCount)
        }
    }

    @Test func `wiping overwrites what a message held`() {
        withArena { arena in
            arena.begin(budget: .max)
            guard let memory = arena.allocate(64) else {
                Issue.record("no memory")
                return
            }
            memory.initializeMemory(as: UInt8.self, repeating: 0xAA, count: 64)
            _ = arena.allocate(Arena.keptByteCount * 4)
            arena.reset(wiping: true)
            arena.begin(budget: .max)
            #expect(arena.allocate(64) == memory)
            #expect(UnsafeRawBufferPointer(start: memory, count: 64).allSatisfy { $0 == 0 })
        }
    }

    @Test func `the messages with a secret inside are the ones that are wiped`() {
        #expect(AccountsSignUpRequest.holdsSecret)
        #expect(UsersImportRequest.holdsSecret)
        #expect(!UsersGetRequest.holdsSecret)
    }

    @Test func `decoding that runs out of memory at any allocation is refused and leaves nothing behind`() {
        let users = (0..<3).map { index in
            User(
                tenantID: "acme", uid: Text("u\(index)"), email: "a@b.example",
                providers: [ProviderInfo(providerID: "password"), ProviderInfo(rawID: "x")], customClaimsJSON: [1, 2])
        }
        let value = UsersListResponse(users: users, nextPageToken: "next")
        let bytes = value.encoded() + EncodedBytes.text(99, "unknown")
        var limits = MessageLimits()
        limits.arenaBudgetFactor = 0
        limits.arenaBudgetFloor = 0
        var refused = 0
        while true {
            do throws(DecodeError) {
                #expect(try UsersListResponse(decoding: bytes, limits: limits) == value)
                break
            } catch {
                #expect(error == .budget)
                #expect(Arena.ofThisThread.reservedByteCount == Arena.keptByteCount)
                refused += 1
                limits.arenaBudgetFloor += 8
            }
        }
        #expect(refused > 100)
    }

    @Test func `a message larger than its budget is refused`() {
        let bytes = UsersListResponse(users: [User](repeating: User(), count: 1_000)).encoded()
        var limits = MessageLimits()
        limits.arenaBudgetMax = 16 * 1024
        #expect(throws: DecodeError.budget) { try UsersListResponse(decoding: bytes, limits: limits) }
    }
}

import Base
import Crypto
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Identity

/// Runs `body` on a thread of its own, which releases its arena at its end.
private func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) throws -> Value {
    let result = Mutex<Result<Value, any Error>?>(nil)
    let thread = OSThread(name: "hashes") {
        let value = Result { try body() }
        PasswordArena.release()
        result.withLock { $0 = value }
    }
    thread.join()
    return try #require(result.withLock { $0 }).get()
}

private func profile(_ memoryKiB: Int, _ passes: Int = 1) throws -> PasswordHashProfile {
    try PasswordHashProfile(memoryKiB: memoryKiB, passes: passes)
}

private let password = Secret(Array("correct horse".utf8))

@Suite(.serialized) struct PasswordArenaTests {
    /// A credential that this thread makes without an arena, as every version before did.
    private static func credential(_ profile: PasswordHashProfile, seed: UInt64 = 7) throws -> PasswordCredential {
        try PasswordCredential.hash(password, profile: profile, random: SeededRandom.source(seed: seed))
    }

    @Test func hashesAreTheSameWhateverTheArenaHeldBefore() throws {
        var random = SeededRandom.printed()
        let arena = PasswordArena(profile: try profile(2_048))
        var cases: [(PasswordHashProfile, salt: UInt64)] = []
        for _ in 0..<200 {
            // Some hashes are larger than the arena.
            let memory = Int.random(in: 8...2_300, using: &random)
            cases.append((try profile(memory, Int.random(in: 1...3, using: &random)), salt: random.next()))
        }
        let made = cases
        let (kept, counted) = try onThread {
            let before = PasswordArena.hashCount
            let hashes = try made.map { profile, salt in
                try arena.with(memoryOf: profile.work) { try Self.credential(profile, seed: salt).stored }
            }
            return (hashes, PasswordArena.hashCount - before)
        }
        let usual = try onThread { try made.map { try Self.credential($0, seed: $1).stored } }
        #expect(kept == usual)
        #expect(counted == Int64(made.count { $0.0.memoryKiB <= 2_048 }))
    }

    /// Hashes with several lanes or other salts take another path through libsodium.
    @Test(arguments: [
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc",
    ])
    func importedHashesAreCheckedInTheArena(stored: String) throws {
        let credential = try PasswordCredential(stored: Text(stored))
        let arena = PasswordArena(profile: try profile(256))
        let found = try onThread {
            let before = PasswordArena.hashCount
            let isRight = try arena.with(memoryOf: credential.work) {
                try credential.verify(Secret(Array("password".utf8)))
            }
            return (isRight, PasswordArena.hashCount - before)
        }
        #expect(found == (true, 1))
    }

    @Test func aThreadKeepsOneArenaAndGivesItBack() throws {
        let standard = PasswordHashProfile.standard
        let arena = PasswordArena(profile: standard)
        let before = PasswordArena.byteCount
        let (after, between) = try onThread {
            for profile in [standard, .cheap, standard] {
                _ = try arena.with(memoryOf: profile.work) { try Self.credential(profile) }
            }
            let kept = PasswordArena.byteCount
            _ = try arena.with(memoryOf: try profile(20_000).work) { try Self.credential(try profile(20_000)) }
            return (PasswordArena.byteCount, kept)
        }
        // In whole huge pages.
        #expect(between == before + 20 << 20)
        // A hash that needs more memory has a mapping of its own; the thread does not hold both.
        #expect(after == before)
        #expect(PasswordArena.byteCount == before)
    }

    /// The mappings of this process that the kernel may give huge pages.
    private static func mappingsWithHugePages() throws -> Int {
        let maps = try #require(readFile("/proc/self/smaps"))
        return String(decoding: maps, as: UTF8.self).split(separator: "\n").count { line in
            line.hasPrefix("VmFlags:") && line.split(separator: " ").contains("hg")
        }
    }

    @Test(.enabled(if: access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0))
    func theKernelMayGiveTheArenaHugePages() throws {
        let arena = PasswordArena(profile: .standard)
        let before = try Self.mappingsWithHugePages()
        let during = try onThread {
            _ = try arena.with(memoryOf: PasswordHashProfile.standard.work) { try Self.credential(.cheap) }
            return try Self.mappingsWithHugePages()
        }
        #expect(during == before + 1)
    }

    /// Setting up many pages in one call would keep all mappings of the process locked (docs/decisions/0042).
    @Test func pagesAreSetUpWhenTheyAreWritten() throws {
        let byteCount = 4 << 20
        let profile = try profile(4_096)
        let arena = PasswordArena(profile: profile)
        let work = profile.work
        let residentCounts = try onThread {
            arena.with(memoryOf: work) {
                // As libsodium asks. The first mapping is the arena, the second the system's, as for a larger hash.
                let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE
                let memories = (0..<2).compactMap { _ in mmap(nil, byteCount, PROT_READ | PROT_WRITE, flags, -1, 0) }
                defer { for memory in memories { munmap(memory, byteCount) } }
                return memories.map { memory in
                    var states = [UInt8](repeating: 0, count: byteCount / 4_096)
                    guard mincore(memory, byteCount, &states) == 0 else { return -1 }
                    return states.count { $0 & 1 != 0 }
                }
            }
        }
        #expect(residentCounts == [0, 0])
    }

    @Test func nothingOfAHashIsLeftWhenAThreadPauses() throws {
        let size = 256 << 10
        let profile = try profile(256)
        let arena = PasswordArena(profile: profile)
        let (unwiped, before, after) = try onThread {
            /// The number of bytes that are not zero in the memory that the arena would lend to a hash.
            func remains() -> Int {
                arena.with(memoryOf: profile.work) {
                    let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                    defer { munmap(memory, size) }
                    return UnsafeRawBufferPointer(start: memory, count: size).count { $0 != 0 }
                }
            }
            _ = try arena.with(memoryOf: profile.work) { try Self.credential(profile) }
            let unwiped = PasswordArena.unwipedByteCount
            let before = remains()
            PasswordArena.wipe()
            return (unwiped, before, remains())
        }
        #expect(unwiped == size && before > size / 2 && after == 0)
    }

    @Test func aSmallerHashLeavesNothingOfALargerOne() throws {
        let arena = PasswordArena(profile: try profile(512))
        let unwiped = try onThread {
            for memory in [512, 64] {
                let profile = try profile(memory)
                _ = try arena.with(memoryOf: profile.work) { try Self.credential(profile) }
            }
            return PasswordArena.unwipedByteCount
        }
        #expect(unwiped == 64 << 10)
    }

    /// All other mappings come from the system, before, during and after a hash.
    @Test func otherMappingsAreTheirOwn() throws {
        let arena = PasswordArena(profile: try profile(64))
        let work = try profile(64).work
        try onThread {
            let size = 16 << 10
            let flags = MAP_PRIVATE | MAP_ANONYMOUS
            func map(_ length: Int, _ flags: Int32, _ protection: Int32 = PROT_READ | PROT_WRITE, _ file: Int32 = -1)
                -> UnsafeMutableRawPointer?
            {
                let found = mmap(nil, length, protection, flags, file, 0)
                return found == MAP_FAILED ? nil : found
            }
            try arena.with(memoryOf: work) {
                let lent = try #require(map(size, flags))
                let before = PasswordArena.hashCount
                let file = open("/proc/self/exe", O_RDONLY)
                defer { close(file) }
                // Not from the arena: it is lent already; a file; read-only memory; shared memory.
                let others = [
                    map(size, flags), map(size, MAP_PRIVATE, PROT_READ, file), map(size, flags, PROT_READ),
                    map(size, MAP_SHARED | MAP_ANONYMOUS),
                ].compactMap { $0 }
                #expect(Set(others + [lent]).count == 5)
                for other in others { #expect(munmap(other, size) == 0) }
                #expect(munmap(lent, size) == 0)
                // One mapping is too large, the other has no size.
                let large = try #require(map(1 << 20, flags))
                #expect(munmap(large, 1 << 20) == 0)
                #expect(map(0, flags) == nil && errno == EINVAL)
                #expect(PasswordArena.hashCount == before)
                #expect(map(size, flags) == lent)
            }
            let first = try #require(map(size, flags))
            let second = try #require(map(size, flags))
            #expect(first != second && munmap(first, size) == 0 && munmap(second, size) == 0)
        }
    }
}

internal import CPasswordArena
public import Crypto
public import Reactor

/// The memory in which argon2id hashes are computed. Each thread of the password pool keeps its own from one hash to
/// the next; docs/decisions/0042 says why, and CPasswordArena.h how.
///
/// It is as large as a hash of this server's own profile. A hash that takes more has a mapping of its own, and the
/// thread gives its arena back first, so that it never holds both.
public struct PasswordArena: Sendable {
    private let byteCountMax: Int

    public init(profile: PasswordHashProfile) { byteCountMax = profile.work.memoryByteCount }

    /// A thread wipes its arena when no work waits, and gives it back when it rests. While work waits nothing is wiped:
    /// the next hash overwrites what the last one left.
    public static func idling(restAfter: Duration) -> WorkerIdling {
        WorkerIdling(pause: wipe, rest: release, restAfter: restAfter)
    }

    /// Overwrites what hashes left in the calling thread's arena.
    @Sendable static func wipe() { password_arena_wipe() }
    /// Gives the calling thread's arena back to the system.
    @Sendable static func release() { password_arena_release() }

    /// The bytes of all threads' arenas together.
    public static var byteCount: Int64 { password_arena_byte_count() }
    /// How many hashes were computed in an arena.
    public static var hashCount: Int64 { password_arena_hash_count() }
    /// The bytes that hashes left in the calling thread's arena.
    static var unwipedByteCount: Int { password_arena_unwiped_byte_count() }

    /// Runs a hash with the calling thread's arena, if it fits.
    @available(*, noasync, message: "belongs to the thread: password pool only")
    func with<Result>(memoryOf work: PasswordCredential.Work, _ hash: () throws -> Result) rethrows -> Result {
        guard work.memoryByteCount <= byteCountMax else {
            Self.release()
            return try hash()
        }
        // Without memory for the arena, libsodium asks for its own memory, and reports when there is none.
        guard password_arena_begin(byteCountMax) else { return try hash() }
        defer { password_arena_end() }
        return try hash()
    }
}

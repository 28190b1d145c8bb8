/// The cost of a new password hash: argon2id with one lane (RFC 9106), a 16-byte salt and a 32-byte tag.
public struct PasswordHashProfile: Sendable, Equatable {
    public let memoryKiB: Int
    public let passes: Int

    /// Memory 8 KiB to 256 MiB, 1 to 10 passes; anything else is `outOfRange`.
    public init(memoryKiB: Int, passes: Int) throws(CryptoError) {
        guard Argon2idHash.memoryRange.contains(memoryKiB), (1...10).contains(passes) else {
            throw .outOfRange
        }
        self.init(memory: memoryKiB, passes: passes)
    }

    private init(memory: Int, passes: Int) {
        self.memoryKiB = memory
        self.passes = passes
    }

    /// OWASP's setting with the least memory that still has the full strength: 19 MiB, 2 passes.
    public static let standard = PasswordHashProfile(memory: 19_456, passes: 2)

    /// OWASP's equivalent setting with the most memory and the fewest passes: 46 MiB, 1 pass.
    public static let moreMemory = PasswordHashProfile(memory: 47_104, passes: 1)

    /// Protects nothing: for synthetic tenants and tests.
    public static let cheap = PasswordHashProfile(memory: 8, passes: 1)
}

// What checking a hash takes, from the numbers that the hash itself names: whoever brings hashes in chooses these.

extension PasswordCredential {
    /// Memory and time that one check needs.
    public struct Work: Sendable, Equatable {
        public let memoryByteCount: Int
        /// On one core of a server of today; right within a factor of three.
        public let time: Duration
    }
}

extension PasswordHashProfile {
    /// What making a hash takes.
    public var work: PasswordCredential.Work { Argon2idHash.work(memoryKiB: memoryKiB, passes: passes) }
}

extension Argon2idHash {
    var work: PasswordCredential.Work { Self.work(memoryKiB: memoryKiB, passes: passes) }

    /// 300 ns for a KiB in each pass.
    static func work(memoryKiB: Int, passes: Int) -> PasswordCredential.Work {
        PasswordCredential.Work(
            memoryByteCount: memoryKiB * 1_024, time: .nanoseconds(Int64(memoryKiB) * Int64(passes) * 300))
    }
}

extension BcryptHash {
    /// 50 µs for each of 2^cost rounds.
    var work: PasswordCredential.Work {
        PasswordCredential.Work(memoryByteCount: 64 * 1_024, time: .microseconds(50 << Int64(rounds)))
    }
}

extension FirebaseScryptHash {
    /// scrypt fills its memory and reads it once more: 3 ns for a byte.
    var work: PasswordCredential.Work {
        let byteCount = 128 * rounds << memoryCost
        return PasswordCredential.Work(memoryByteCount: byteCount, time: .nanoseconds(Int64(byteCount) * 3))
    }
}

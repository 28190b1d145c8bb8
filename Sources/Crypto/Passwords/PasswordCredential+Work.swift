// The cost of checking a hash, from the numbers in the hash itself: the person who imports hashes chooses them.

extension PasswordHashProfile {
    /// The memory and the time for making a hash.
    public var work: PasswordHashWork { Argon2idHash.work(memoryKiB: memoryKiB, passes: passes) }
}

extension Argon2idHash {
    var work: PasswordHashWork { Self.work(memoryKiB: memoryKiB, passes: passes) }

    /// 300 ns for a KiB in each pass.
    static func work(memoryKiB: Int, passes: Int) -> PasswordHashWork {
        PasswordHashWork(
            memoryByteCount: memoryKiB * 1_024, time: .nanoseconds(Int64(memoryKiB) * Int64(passes) * 300))
    }
}

extension BcryptHash {
    /// 50 µs for each of 2^cost rounds.
    var work: PasswordHashWork {
        PasswordHashWork(memoryByteCount: 64 * 1_024, time: .microseconds(50 << Int64(rounds)))
    }
}

extension FirebaseScryptHash {
    /// scrypt fills its memory and reads it once more: 3 ns for a byte.
    var work: PasswordHashWork {
        let byteCount = 128 * rounds << memoryCost
        return PasswordHashWork(memoryByteCount: byteCount, time: .nanoseconds(Int64(byteCount) * 3))
    }
}

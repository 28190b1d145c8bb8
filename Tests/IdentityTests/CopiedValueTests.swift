import Rules
import Testing

@testable import Identity

/// Values that go through a whole sign-in are copied dozens of times on the way. `Limits` has two kilobytes: a value
/// that holds all of it makes each of those copies as large.
@Suite struct CopiedValueTests {
    @Test(arguments: [
        ("Origin", MemoryLayout<Origin>.size), ("EndUserRequest", MemoryLayout<EndUserRequest>.size),
        ("SignInAttempt", MemoryLayout<SignInAttempt>.size), ("FirstFactor", MemoryLayout<FirstFactor>.size),
        ("AccountEffect", MemoryLayout<AccountEffect>.size), ("SignedIn", MemoryLayout<SignedIn>.size),
        ("Account", MemoryLayout<Account>.size), ("TenantSettings", MemoryLayout<TenantSettings>.size),
    ])
    func valuesOfASignInAreSmall(name: String, byteCount: Int) {
        #expect(byteCount <= 768, "\(name)")
    }
}

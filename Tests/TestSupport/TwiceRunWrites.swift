import Glibc
public import Store

extension StoreConfiguration {
    /// With `POSTERN_TEST_WRITES=twice` (`tools/test --twice`) the body of every write runs twice over the same state,
    /// and only what its second run did is committed. A body that counts, collects or takes something outside of its
    /// transaction does so twice, which its test finds.
    public mutating func runWritesTwiceIfAsked() {
        guard beforeRerun == nil, let wish = getenv("POSTERN_TEST_WRITES") else { return }
        precondition(String(cString: wish) == "twice", "POSTERN_TEST_WRITES is \"twice\" or not set")
        beforeRerun = { _ in }
    }
}

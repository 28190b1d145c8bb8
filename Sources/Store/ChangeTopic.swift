/// What a write is about, for those who wait for it to change: a hash, so that naming it costs next to nothing.
///
/// Two topics of one hash are woken for each other, which is harmless. Hashes differ from process to process.
public struct ChangeTopic: Hashable, Sendable {
    private let hash: Int

    /// `kind` keeps topics of equal names apart.
    public init(_ kind: StaticString, _ names: some Hashable) {
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(start: kind.utf8Start, count: kind.utf8CodeUnitCount))
        hasher.combine(names)
        hash = hasher.finalize()
    }
}

import Base

/// The part of a long piece of work that one write did.
public struct WriteSlice: Sendable, Equatable {
    public let count: Int
    /// Whether there may be more to do, in a further write.
    public let isMore: Bool
}

/// The time that a write has for its part of a long piece of work, because all others wait meanwhile. The part is one
/// item at least.
public struct SliceTime: Sendable {
    private let end: Instant

    init(_ duration: Duration) { end = Instant.now.advanced(by: duration) }

    public var isOver: Bool { Instant.now >= end }
}

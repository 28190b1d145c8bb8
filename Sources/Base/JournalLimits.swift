/// The part of `Limits` that is about the journal of a cluster.
public struct JournalLimits: Sendable {
    /// The changes of one entry, when there are several writes in it; and of a single write.
    public var batchByteCountMax = 4 << 20
    public var entryByteCountMax = 16 << 20
    /// How long the engine may be away before what waits to be written is refused.
    public var patience = Duration.seconds(2)
    /// How long the engine may take for one answer before the connection counts as lost.
    public var answerTimeout = Duration.seconds(10)
    /// How long a node waits between two looks at the journal where the engine cannot tell it of news.
    public var pollInterval = Duration.milliseconds(50)
    /// The same where it can: a connection that is dead tells nothing.
    public var lookInterval = Duration.seconds(1)
    /// A node that is more entries behind than this has to join again.
    public var headsMax = 1_000_000
    /// A node whose engine answers, and which has not been at the journal's end for so long, does not serve.
    public var behindMax = Duration.seconds(5)
    /// How long a node serves what it has without the engine.
    public var staleAfter = Duration.seconds(60)

    public init() {}
}

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

    /// A snapshot to join by is made when the journal has so many entries since the newest one, or so many bytes.
    public var entriesBetweenSnapshots = 100_000
    public var byteCountBetweenSnapshots = 256 << 20
    /// What a snapshot is cut into.
    public var snapshotPartByteCount = 1 << 20
    /// A snapshot that nobody has worked on for so long is given up; so is the joining of a node.
    public var abandonedAfter = Duration.seconds(60)
    /// How often a node tells the others that it is there, and how far it has come.
    public var registrationInterval = Duration.seconds(5)
    /// How often a node looks whether a snapshot is due and whether the journal can be trimmed.
    public var trimInterval = Duration.seconds(60)
    /// The journal keeps what a node needs that was away for less than this.
    public var absentNodesKept = Duration.hours(24)
    /// ... as long as the entries below the newest snapshot, which only such nodes need, have fewer bytes than this.
    public var heldBackByteCountMax = 4 << 30
    /// The entries that one statement deletes.
    public var trimmedAtOnceMax = 10_000
    /// How long a node that joins waits for an engine that went away.
    public var joiningPatience = Duration.seconds(60)
    /// How often it begins again because its snapshot was replaced by a newer one.
    public var joiningTriesMax = 3

    // Work that one node does for all: docs/decisions/0122-what-one-node-does-for-all.md
    /// How long a node sees a lease unchanged before it takes the lease over.
    public var leaseDuration = Duration.minutes(3)
    /// How long a message belongs to the node that delivers it.
    public var mailClaim = Duration.minutes(2)
    /// How long the engine must have answered before a message is taken over whose node did not say what became of it:
    /// after an outage, that node says so first.
    public var mailClaimGrace = Duration.seconds(30)

    // Clocks, and reading while the engine is away: docs/decisions/0123-positions-clocks-and-staleness.md
    /// How far a node's clock may be from the engine's, and for how long it may be further away before the node writes
    /// nothing.
    public var clockDifferenceMax = Duration.seconds(2)
    public var clockPatience = Duration.seconds(10)
    /// What a node answers after `staleAfter` where a revocation that it missed would matter.
    public var whenBehind = WhenBehind.refuse
    /// The questions for the journal's end that requests without a known credential may cause in a second.
    public var strangersQuestionsPerSecond = 100

    public init() {}
}

/// What a node answers that may have missed a revocation.
public enum WhenBehind: String, Sendable, CaseIterable {
    /// NODE_BEHIND. Nobody uses a token that was revoked longer than `JournalLimits.staleAfter` ago.
    case refuse
    /// What the node knows. Tokens go on while the engine is away, revoked ones as well.
    case serve
}

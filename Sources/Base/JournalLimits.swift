/// The part of `Limits` that is about the journal of a cluster.
public struct JournalLimits: Sendable {
    /// The bytes of changes in one entry that holds several writes; and in one that holds a single write.
    public var batchByteCountMax = 4 << 20
    public var entryByteCountMax = 16 << 20
    /// How long the engine may be away before the waiting writes are refused.
    public var patience = Duration.seconds(2)
    /// How long the engine may take for one answer before the connection counts as lost.
    public var answerTimeout = Duration.seconds(10)
    /// If the engine sends nothing for this long while a node waits for an answer to a question that changes nothing,
    /// the node asks over a new connection. A node of a slow engine waits longer (`ReadPatience`).
    public var readSilenceMin = Duration.seconds(2)
    /// How long a node waits between two looks at the journal if the engine cannot notify it.
    public var pollInterval = Duration.milliseconds(50)
    /// The same if the engine can notify it: a dead connection brings no notifications.
    public var lookInterval = Duration.seconds(1)
    /// A node that is more entries behind than this has to join again.
    public var headsMax = 1_000_000
    /// How many heads of entries a node reads with one question, which has to be answered within `answerTimeout`. At
    /// least 2: each question repeats the last head of the one before.
    public var headsAtOnceMax = 20_000
    /// If the engine shows a node entries that its store lacks, and the node has not been at the journal's end for this
    /// long, it does not serve.
    public var behindMax = Duration.seconds(5)
    /// How long a node serves its own data while the engine is away, or answers nothing.
    public var staleAfter = Duration.seconds(60)

    // Turns: docs/decisions/0140-a-node-that-is-always-outrun-asks-for-a-turn.md
    /// A node asks for a turn if other nodes' entries came before its own this often in a row, and for this long.
    public var outrunsBeforeTurn = 3
    public var outrunTimeBeforeTurn = Duration.milliseconds(500)
    /// If that did not help, the node asks again after this.
    public var turnPause = Duration.seconds(3)
    /// How long the request for a turn may wait, and keep other nodes' entries waiting behind it. It is less than the
    /// second after which PostgreSQL would end an autovacuum of the journal for it (`deadlock_timeout`).
    public var turnWaitMax = Duration.milliseconds(900)
    /// If a node that has the turn keeps silent for this long, the engine ends its connection.
    public var turnSilenceMax = Duration.seconds(1)

    /// A snapshot for joining nodes is made when the journal has this many entries, or this many bytes, since the
    /// newest snapshot.
    public var entriesBetweenSnapshots = 100_000
    public var byteCountBetweenSnapshots = 256 << 20
    /// The size of the parts of a snapshot.
    public var snapshotPartByteCount = 1 << 20
    /// How long a node leaves snapshots to the others if its process ended while it made one: five times as long each
    /// further time, up to the second value.
    public var snapshotPauseMin = Duration.minutes(5)
    public var snapshotPauseMax = Duration.hours(24)
    /// If nobody has worked on a snapshot for this long, it is abandoned. The same applies to the joining of a node.
    public var abandonedAfter = Duration.seconds(60)
    /// How often a node tells the others that it is there, and how far it has come.
    public var registrationInterval = Duration.seconds(5)
    /// How often a node looks whether a snapshot is due and whether the journal can be trimmed.
    public var trimInterval = Duration.seconds(60)
    /// The journal keeps the entries that a node needs if it was away for less than this.
    public var absentNodesKept = Duration.hours(24)
    /// They are kept while the entries below the newest snapshot, which only such nodes need, have fewer bytes than
    /// this.
    public var heldBackByteCountMax = 4 << 30
    /// The most entries that one statement deletes.
    public var trimmedAtOnceMax = 10_000
    /// How long a node that joins waits for an engine that went away.
    public var joiningPatience = Duration.seconds(60)
    /// How often a joining node begins again because its snapshot was replaced by a newer one.
    public var joiningTriesMax = 3

    // Work that one node does for all: docs/decisions/0122-what-one-node-does-for-all.md
    /// How long a node sees a lease unchanged before it takes the lease over.
    public var leaseDuration = Duration.minutes(3)
    /// How long a message is put off when a node claims it, and then how long another node sees the claim unchanged
    /// before it takes the message over.
    public var mailClaim = Duration.minutes(2)
    /// How long the engine must have answered before another node takes over a message whose result was not reported.
    /// After an outage, this gives the first node time to report it.
    public var mailClaimGrace = Duration.seconds(30)

    // Clocks, and reading while the engine is away: docs/decisions/0123-positions-clocks-and-staleness.md
    /// How far a node's clock may be from the engine's, and how long it may be further away before the node stops
    /// writing.
    public var clockDifferenceMax = Duration.seconds(2)
    public var clockPatience = Duration.seconds(10)
    /// What a node answers after `staleAfter` to a request for which a missed revocation would matter.
    public var whenBehind = WhenBehind.refuse
    /// How many queries for the journal's end requests without a known credential may cause per second.
    public var strangersQuestionsPerSecond = 100

    public init() {}
}

/// The answer of a node that may have missed a revocation.
public enum WhenBehind: String, Sendable, CaseIterable {
    /// NODE_BEHIND. Nobody can use a token or a credential that was revoked longer than `JournalLimits.staleAfter` ago.
    case refuse
    /// The node's own data. While the engine is away, tokens and credentials keep working, even those that were revoked
    /// meanwhile.
    case serve
}

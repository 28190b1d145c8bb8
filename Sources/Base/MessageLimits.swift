/// The bounds of `Limits` for decoding messages and the envelopes around them.
///
/// They stand in a struct of their own because they are handed down with every message: a copy of all `Limits` takes
/// more than a kilobyte.
public struct MessageLimits: Sendable {
    public var depthMax = 16
    public var fieldsPerMessageMax = 1_024
    public var fieldsMax = 16_384
    public var unknownFieldsMax = 32
    /// The memory that one decoded message may take, as a multiple of its bytes; never more than the hard cap.
    public var arenaBudgetFactor = 8
    public var arenaBudgetFloor = 512 * 1024
    public var arenaBudgetMax = 16 * 1024 * 1024
    /// The keys and values of an envelope's metadata, with 32 bytes for each entry.
    public var metadataMax = 8 * 1024
    public var metadataEntriesMax = 64

    public init() {}

    /// For records that this server or another node of its cluster wrote, as a MAC or a seal proves. Their sizes were
    /// bounded when they were accepted. So no limit applies but that of nesting: what was accepted can always be read.
    public static let ofStoredRecords: MessageLimits = {
        var limits = MessageLimits()
        limits.fieldsPerMessageMax = .max
        limits.fieldsMax = .max
        limits.unknownFieldsMax = .max
        limits.arenaBudgetFloor = .max
        limits.arenaBudgetMax = .max
        return limits
    }()
}

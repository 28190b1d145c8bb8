/// The part of `Limits` that bounds a client's channel, and not the server.
public struct ChannelLimits: Sendable {
    /// The servers that one channel may be given.
    public var serversMax = 16
    /// The addresses of one name that a channel uses; it leaves out the others.
    public var addressesPerNameMax = 16
    /// A name whose addresses failed is looked up again, but not sooner than this after the last time.
    public var lookupIntervalMin = Duration.seconds(5)

    public init() {}
}

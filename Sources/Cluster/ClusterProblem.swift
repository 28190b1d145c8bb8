/// The reason why a store does not become part of a cluster.
public enum ClusterProblem: Error, CustomStringConvertible, Sendable {
    case isMember
    /// The store is from an older server, and was too full for its upgrade.
    case upgradePutOff
    case exists(schema: String)
    case absent(schema: String)
    /// The first snapshot could not be made, but the cluster has begun.
    case noSnapshot(String)
    /// The directory that should join holds a store already.
    case notEmpty(directory: String)

    public var description: String {
        switch self {
        case .isMember: "the store belongs to a cluster already: start posternd with its --journal"
        case .upgradePutOff:
            "the store was made by an older server and is too full to be upgraded, and in a cluster it cannot be "
                + "upgraded: raise map_bytes, or start posternd without --journal and delete something; then try again"
        case .exists(let schema): "the schema \(schema) holds a cluster already: name another one"
        case .absent(let schema): "the schema \(schema) holds no cluster to join"
        case .noSnapshot(let reason):
            "the cluster has begun, but its first snapshot could not be made (\(reason)): others can join when this "
                + "node has served for a minute"
        case .notEmpty(let directory): "\(directory): there is a store already"
        }
    }
}

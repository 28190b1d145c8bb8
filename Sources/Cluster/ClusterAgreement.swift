import Store

/// Settings that must be the same on every node, because any node may check the token of another.
public struct ClusterAgreement: Equatable, Sendable {
    public let projectID: String
    public let issuer: String
    public let actionURL: String

    public init(projectID: String, issuer: String, actionURL: String) {
        (self.projectID, self.issuer, self.actionURL) = (projectID, issuer, actionURL)
    }

    /// The columns of `postern_cluster`, in this order.
    static let columns = "project_id, issuer, action_url"
    var values: [String] { [projectID, issuer, actionURL] }
    private static let settings = ["project_id", "issuer", "action_url"]

    /// Refuses a node whose settings differ from the cluster's.
    func require(_ cluster: ClusterAgreement) throws(JournalEngineError) {
        for ((setting, own), expected) in zip(zip(Self.settings, values), cluster.values) where own != expected {
            throw .unusable("\(setting) is \(own) here, and \(expected) on the nodes of the cluster: say the same here")
        }
    }
}

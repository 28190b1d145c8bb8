import Base
import Identity
import Messages
import Store

/// postern.v1.Project/GetClusterStatus
enum ProjectGetClusterStatus: FastMethod {
    static func handle(
        _ request: ProjectGetClusterStatusRequest, _ call: borrowing ReadCall,
        _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectGetClusterStatusResponse> {
        guard let status = call.journalStatus, let place = try transaction.journalPlace() else {
            return .message(ProjectGetClusterStatusResponse())
        }
        var response = ProjectGetClusterStatusResponse(
            inCluster: true, clusterID: Hex.encode(place.clusterID), position: Int64(clamping: place.position),
            connected: status.isConnected, behindEntries: Int64(clamping: status.behindCount),
            trouble: Text(status.trouble))
        if let seen = status.endSeenAt {
            response.endSeenAtMicros = call.now.microseconds - Instant.nowWithSleep.nanoseconds(since: seen) / 1_000
        }
        return .message(response)
    }
}

import Messages
import Store

/// postern.v1.Project/Stats
enum ProjectStats: FastMethod {
    static func handle(
        _ request: ProjectStatsRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectStatsResponse> {
        .message(ProjectStatsResponse(values: try call.statistics()))
    }
}

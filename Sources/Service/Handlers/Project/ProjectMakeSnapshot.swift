import Base
import Identity
import Messages
import Store

/// postern.v1.Project/MakeSnapshot
enum ProjectMakeSnapshot: SlowMethod {
    static func handle(
        _ request: ProjectMakeSnapshotRequest, _ call: Call
    ) async throws -> ProjectMakeSnapshotResponse {
        let made = try await call.project.snapshots.make(deadline: call.deadline)
        return ProjectMakeSnapshotResponse(
            position: Int64(clamping: made.position), byteCount: Int64(clamping: made.byteCount))
    }
}

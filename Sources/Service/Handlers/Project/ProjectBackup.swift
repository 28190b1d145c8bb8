import Base
import Identity
import Messages
import Store

/// postern.v1.Project/Backup
enum ProjectBackup: ServerStreamMethod {
    static func handle(
        _ request: ProjectBackupRequest, _ call: StreamCall, _ replies: ReplyStream<ProjectBackupResponse>
    ) async throws {
        let backup = try await call.charging { try await call.project.backups.begin(.rpc, origin: call.origin) }
        defer { backup.end() }
        var byteCount: Int64 = 0
        while let piece = try await backup.next() {
            try call.project.store.read { try call.checkCaller(in: $0) }
            byteCount += Int64(piece.count)
            try await replies.send(ProjectBackupResponse(data: piece))
        }
        try await replies.send(ProjectBackupResponse(byteCount: byteCount))
    }
}

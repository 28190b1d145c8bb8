import Base
import Identity
import Messages
import Store

/// postern.v1.Project/ServerInfo
enum ProjectServerInfo: FastMethod {
    static func handle(
        _ request: ProjectServerInfoRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectServerInfoResponse> {
        let configuration = call.configuration
        return .message(
            ProjectServerInfoResponse(
                version: call.version, protocolVersion: 1, projectID: configuration.projectID,
                issuer: configuration.issuer, frameBytesMax: Int64(call.limits.framePayloadMax),
                streamsMax: Int32(call.limits.streamsMax), startedAtMicros: call.startedAt.microseconds,
                historyID: Hex.encode(try transaction.historyID())))
    }
}

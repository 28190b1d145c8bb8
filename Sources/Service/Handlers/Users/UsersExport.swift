import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/Export: some users in a message, and no more than the client takes.
enum UsersExport: ServerStreamMethod {
    /// Small, so that a slice is short work on the loop.
    private static let sliceMax = 100

    static func handle(
        _ request: UsersExportRequest, _ call: StreamCall, _ replies: ReplyStream<UsersExportResponse>
    ) async throws {
        let includesSecrets = request.includePasswordHashes
        guard !includesSecrets || call.caller?.exportsPasswordHashes == true else {
            throw Failure.hashExportNotAllowed
        }
        var filter = request
        filter.cursor = .empty
        let cursor = try Page(
            at: request.cursor, of: filter, method: call.method.fullName, tenantID: call.tenantID,
            key: call.project.pageTokenKey, itemMax: sliceMax, limits: call.limits)
        if includesSecrets { try call.checkRecordQuotas() }
        var exporter = try await call.charging {
            try await call.project.exports.begin(
                tenantID: call.tenantID, includesSecrets: includesSecrets, origin: call.origin)
        }
        var last = cursor.last
        repeat {
            (exporter, last) = try await replies.send(inTurn: true) { [exporter, last] in
                _ = try call.stillAdmitted()
                var exporter = exporter
                let slice = try exporter.next(after: last, bounds: cursor.bounds)
                let message = UsersExportResponse(
                    users: slice.users, hashSpecs: slice.hashSpecs, cursor: cursor.token(behind: slice.last))
                return (message, (exporter, slice.last))
            }
        } while last != nil
    }
}

extension Failure {
    fileprivate static let hashExportNotAllowed = Failure(
        .passwordHashExportNotAllowed,
        "This credential may not export password hashes; use an API key that was made with export_password_hashes.")
}

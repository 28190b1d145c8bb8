import Base
import Identity
import Messages
import Rules

/// postern.v1.Users/Import
enum UsersImport: BidirectionalMethod {
    /// An import whose first batch has come.
    private struct Begun {
        var importer: UserImporter
        /// As the first batch names it.
        let tenantID: Text
    }

    static func handle(
        _ requests: RequestStream<UsersImportRequest>, _ call: StreamCall, _ replies: ReplyStream<UsersImportResponse>
    ) async throws {
        try call.admission.checkQuotas()
        var begun: Begun?
        while let answer = try await answerNext(requests, &begun, call) { try await replies.send(answer) }
    }

    /// Imports the next batch. A function of its own, so that nobody keeps the batch, or its place, while its answer
    /// waits.
    private static func answerNext(
        _ requests: RequestStream<UsersImportRequest>, _ begun: inout Begun?, _ call: StreamCall
    ) async throws -> UsersImportResponse? {
        var place: ImportPlace?
        defer { place?.leave() }
        let next = try await requests.next {
            place = try await call.project.imports.places.take(call.settings.tenantID)
        }
        guard let request = next else { return nil }
        let settings = try call.stillAdmitted()
        var present = if let begun { begun } else { try await begin(request, call) }
        present.importer.settings = settings
        guard request.tenantID.isEmpty || request.tenantID == present.tenantID else {
            throw Failure(
                .tenantIDMismatch,
                "This batch names another tenant than the first one; leave tenant_id empty, or open another stream.")
        }
        guard request.users.count <= call.limits.importBatchMax else {
            throw Failure.invalid(
                .importBatchTooLarge, field: "users", "must hold at most \(call.limits.importBatchMax) users")
        }
        try call.admission.checkQuotas()
        let answer = try await call.charging {
            try await present.importer.importBatch(request, workTurn: requests.workTurn)
        }
        begun = present
        return answer
    }

    /// Begins the import with its first batch. The hash spec of the batch may be stored: this counts as a change of the
    /// caller.
    private static func begin(_ first: UsersImportRequest, _ call: StreamCall) async throws -> Begun {
        let importer = try await call.charging {
            try await call.project.imports.begin(first, settings: call.settings, origin: call.origin)
        }
        return Begun(importer: importer, tenantID: first.tenantID)
    }
}

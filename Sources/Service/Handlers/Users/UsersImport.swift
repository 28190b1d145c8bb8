import Base
import Identity
import Messages
import Rules

/// postern.v1.Users/Import
enum UsersImport: BidirectionalMethod {
    static func handle(
        _ first: UsersImportRequest, _ requests: RequestStream<UsersImportRequest>, _ call: StreamCall,
        _ replies: ReplyStream<UsersImportResponse>
    ) async throws {
        try call.admission.checkQuotas()
        var importer = try await call.project.imports.begin(first, settings: call.settings, origin: call.origin)
        var next: UsersImportRequest? = first
        while let request = next {
            _ = try call.stillAdmitted()
            guard request.tenantID.isEmpty || request.tenantID == first.tenantID else { throw Failure.tenantMismatch }
            guard request.users.count <= call.limits.importBatchMax else {
                throw Failure.invalid(
                    .importBatchTooLarge, field: "users", "must hold at most \(call.limits.importBatchMax) users")
            }
            try call.admission.checkQuotas()
            let answer = try await call.charging {
                try await importer.importBatch(request, workTurn: requests.workTurn)
            }
            try await replies.send(answer)
            next = try await requests.next()
        }
    }
}

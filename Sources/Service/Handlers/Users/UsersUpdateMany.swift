import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/UpdateMany
enum UsersUpdateMany: SlowMethod {
    static func isLong(_ request: UsersUpdateManyRequest) -> Bool { true }

    /// Disabling users and ending sessions go on in a full store; longer claims do not.
    static func purpose(of request: UsersUpdateManyRequest, _ rule: MethodDescriptor) -> WritePurpose {
        guard let mask = try? UpdateMask<UsersUpdateManyRequest>(request.updateMask?.paths),
            !mask.contains(.claimsPatchJSON)
        else { return .growth }
        let ends = mask.contains(.disabled) && request.disabled || mask.contains(.revokeTokens) && request.revokeTokens
        return ends ? .relief : .session
    }

    static func handle(_ request: UsersUpdateManyRequest, _ call: Call) async throws -> UsersUpdateManyResponse {
        let limits = call.limits
        guard (0...limits.administration.usersUpdatedPerCallMax).contains(Int(request.pageSize)) else {
            throw Failure.invalid(
                .invalidPageSize, field: "page_size",
                "must be 0 to \(limits.administration.usersUpdatedPerCallMax)")
        }
        var wanted = request.query ?? UsersQueryRequest()
        guard wanted.tenantID.isEmpty, wanted.pageSize == 0, wanted.pageToken.isEmpty else {
            throw Failure.invalid(
                .invalidQuery, field: "query", "must leave tenant_id, page_size and page_token empty")
        }
        let query = try UserQuery(wanted, limits: limits)
        (wanted.order, wanted.descending) = (.unspecified, false)
        guard (wanted != UsersQueryRequest()) != request.allUsers else {
            throw Failure.invalid(.invalidQuery, field: "query", "must have a condition, or else all_users be set")
        }
        let patch = try UserPatch(request, limits: limits)
        let page = try call.page(request)
        let countMax = request.pageSize == 0 ? limits.pageSizeDefault : Int(request.pageSize)
        let place = try await call.project.imports.places.take(call.settings.tenantID)
        defer { place.leave() }
        return try await call.project.users.update(
            query, by: patch, tenantID: call.tenantID, after: page.last, countMax: countMax,
            validateOnly: request.validateOnly, origin: call.origin, pageToken: page.token(behind:))
    }
}

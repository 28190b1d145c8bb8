import Identity
import Messages

/// postern.v1.Providers/Test
enum ProvidersTest: SlowMethod {
    static func handle(_ request: ProvidersTestRequest, _ call: Call) async throws -> ProvidersTestResponse {
        let steps = try await call.project.providers.test(
            request.providerID, tenantID: call.tenantID, now: call.now, deadline: call.deadline)
        return ProvidersTestResponse(ok: !steps.contains { $0.result == .failed }, steps: steps)
    }
}

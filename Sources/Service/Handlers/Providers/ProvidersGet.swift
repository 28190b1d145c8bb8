import Identity
import Messages
import Store

/// postern.v1.Providers/Get
enum ProvidersGet: FastMethod {
    static func handle(
        _ request: ProvidersGetRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProvidersGetResponse> {
        let provider = try transaction.provider(request.providerID, tenantID: call.tenantID)
        return .message(ProvidersGetResponse(provider: provider))
    }
}

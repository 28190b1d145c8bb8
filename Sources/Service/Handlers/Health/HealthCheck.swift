import Base
import Messages
import Store

/// grpc.health.v1.Health/Check
enum HealthCheck: FastMethod {
    static func handle(
        _ request: GRPCHealthCheckRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<GRPCHealthCheckResponse> {
        guard call.isKnown(service: request.service) else {
            throw Failure(.unknownService, "There is no service with this name; \"\" is the whole server.")
        }
        return .message(GRPCHealthCheckResponse(status: call.isServing ? .serving : .notServing))
    }
}

extension ServiceContext {
    func isKnown(_ service: Text) -> Bool { service.isEmpty || serviceNames.contains(service) }
}

import Base
import Messages

/// grpc.health.v1.Health/Watch
enum HealthWatch: ServerStreamMethod {
    static func handle(
        _ request: GRPCHealthCheckRequest, _ call: StreamCall, _ replies: ReplyStream<GRPCHealthCheckResponse>
    ) async throws {
        guard call.service.isKnown(request.service) else {
            try await replies.send(GRPCHealthCheckResponse(status: .serviceUnknown))
            // The standard keeps the stream open, because the service may be registered later. Here this never happens.
            try await call.service.health.neverChanges()
            return
        }
        var isServing = call.service.health.isServing
        while true {
            try await replies.send(GRPCHealthCheckResponse(status: isServing ? .serving : .notServing))
            try await call.service.health.changed(from: isServing)
            isServing = call.service.health.isServing
        }
    }
}

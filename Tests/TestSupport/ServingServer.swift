import Base
import Messages

/// Waits until the server on the port answers a call. That the port takes connections says less: the system takes them
/// from the moment when the port is bound, while the server still starts.
public func blockUntilServing(
    port: UInt16, _ what: @autoclosure () -> String = "", file: String = #fileID, line: Int = #line
) throws {
    try blockUntil("a server answers on port \(port) \(what())", file: file, line: line) {
        guard let client = try? RawClient(port: port) else { return false }
        defer { client.close() }
        let answer = try? client.call(
            "grpc.health.v1.Health/Check", GRPCHealthCheckRequest(), returning: GRPCHealthCheckResponse.self)
        return answer != nil
    }
}

import Base
import Messages
import Service
import TestSupport
import Testing
import Wire

/// Every method answers the same by gRPC as by native frames.
@Suite struct GRPCParityTests {
    private struct Outcome: Equatable {
        var code: StatusCode = .ok
        var reason = ""
        var message = ""
        var violations: [Failure.FieldViolation] = []
        var requestID = ""
        /// The names of the fields in the answer; their contents differ from call to call.
        var fields: [Int] = []
    }

    private static func fields(_ message: [UInt8]) -> [Int] {
        message.withUnsafeBytes { bytes in
            var reader = FieldReader(bytes)
            var numbers: [Int] = []
            while let field = try? reader.next() { numbers.append(field.number) }
            return numbers
        }
    }

    private static func outcome(_ failure: Failure?, requestID: String?, _ message: [UInt8]?) -> Outcome {
        var outcome = Outcome(requestID: requestID ?? "", fields: message.map(fields) ?? [])
        if let failure {
            (outcome.code, outcome.reason, outcome.message) = (failure.code, failure.reason, failure.message)
            outcome.violations = failure.violations
        }
        return outcome
    }

    private static func native(_ client: RawClient, _ fullName: String, _ metadata: [OutgoingMetadata.Entry]) throws
        -> Outcome
    {
        let parts = fullName.split(separator: "/").map { Text(String($0)) }
        var buffer = ByteBuffer()
        let stream = client.nextStream()
        buffer.appendRequest(
            stream: stream, service: parts[0], method: parts[1], metadata: OutgoingMetadata(others: metadata)
        ) { _ in }
        try client.send(buffer.copyBytes())
        let envelope = try WireResponse(decoding: client.readFrame().payload)
        let failure = envelope.status.flatMap { $0.code == 0 ? nil : RawClient.failure($0) }
        let requestID = envelope.metadata.first { $0.key == "x-request-id" }?.value.string
        return outcome(failure, requestID: requestID, failure == nil ? envelope.payload : nil)
    }

    private static func grpc(_ caller: GRPCCaller, _ fullName: String, _ metadata: [OutgoingMetadata.Entry]) throws
        -> Outcome
    {
        let answer = try caller.call(fullName, [[]], metadata: metadata)
        #expect(answer.text(":status") == "200" && answer.text("content-type") == "application/grpc")
        return outcome(answer.failure, requestID: answer.text("x-request-id"), answer.messages.first)
    }

    @Test func `Each unary method has the same outcome, with a credential and without one`() async throws {
        try await withServer { server in
            let client = try server.connect(authenticated: false)
            let caller = try GRPCCaller(port: server.port)
            let key = OutgoingMetadata.Entry(
                key: "authorization",
                value: server.adminKey.bearer)
            let requestID = OutgoingMetadata.Entry(key: "x-request-id", value: "parity")
            var count = 0
            for method in PublishedMethod.all where !method.isRequestStreaming && !method.isResponseStreaming {
                for metadata in [[requestID], [requestID, key]] {
                    let native = try Self.native(client, method.fullName, metadata)
                    let grpc = try Self.grpc(caller, method.fullName, metadata)
                    #expect(grpc == native, "\(method.fullName)")
                    count += 1
                }
            }
            #expect(count > 150)
        }
    }
}

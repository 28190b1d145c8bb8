import Base
import Synchronization
import Wire

/// A request that outlives the turn in which it came in. A class, so that calls without one keep no room for it.
final class OwnedRequest: Sendable {
    private let payload: Mutex<[UInt8]>
    private let authorization: [UInt8]?
    private let idempotencyKey: [UInt8]?

    /// The oldest state that the request may be answered from; nil outside of a cluster.
    let freshness: CallFreshness?

    init(_ request: RequestEnvelope, _ freshness: CallFreshness? = nil) {
        self.freshness = freshness
        payload = Mutex([UInt8](request.payload))
        authorization = request.metadata.authorization.map { [UInt8]($0) }
        idempotencyKey = request.metadata.idempotencyKey.map { [UInt8]($0) }
    }

    /// Lends the envelope that admits and prepares the call: payload, credential and idempotency key.
    func withEnvelope<Result>(_ body: (RequestEnvelope) throws -> Result) rethrows -> Result {
        try payload.withLock({ $0 }).withUnsafeBytes { payload in
            try Self.withBytes(authorization) { authorization in
                try Self.withBytes(idempotencyKey) { idempotencyKey in
                    let nothing = UnsafeRawBufferPointer(rebasing: payload[..<0])
                    let metadata = Metadata(authorization: authorization, idempotencyKey: idempotencyKey)
                    return try body(
                        RequestEnvelope(service: nothing, method: nothing, payload: payload, metadata: metadata))
                }
            }
        }
    }

    /// Gives the payload's memory back: the request is decoded, and the call may last long.
    func release() { payload.withLock { $0 = [] } }

    private static func withBytes<Result>(
        _ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) throws -> Result
    ) rethrows -> Result {
        guard let bytes else { return try body(nil) }
        return try bytes.withUnsafeBytes { try body($0) }
    }
}

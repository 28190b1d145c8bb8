// Blocking calls over a connection, which seed a tenant. Nothing here is measured.

import Base
import Messages
import Wire

/// How a call ended.
enum CallResult {
    case ok(message: UnsafeRawBufferPointer)
    case refused(reason: String)
}

extension Connection {
    /// Makes one call. `body` gets its answer, which is valid only until `body` returns.
    func call<Result>(
        service: Text, method: Text, _ request: some Message, _ body: (CallResult) throws -> Result
    ) throws -> Result {
        var results: [Result] = []
        try pipeline(count: 1, inFlight: 1) { _, stream, buffer in
            buffer.appendRequest(stream: stream, service: service, method: method) { request.encode(into: &$0) }
        } answered: { _, result in
            results.append(try body(result))
        }
        return results[0]
    }

    /// Makes `count` calls, `inFlight` of them at a time; `append` writes the REQUEST of call number 0, 1, …. Once
    /// `isOver`, the answers to the calls in flight are not waited for.
    func pipeline(
        count: Int, inFlight: Int, until isOver: () -> Bool = { false },
        append: (Int, UInt32, inout ByteBuffer) -> Void, answered: (Int, CallResult) throws -> Void
    ) throws {
        var calls: [UInt32: Int] = [:]
        var next = 0
        while !isOver(), next < count || !calls.isEmpty {
            while next < count, calls.count < inFlight {
                guard let stream = takeStream() else { throw BenchError(.failed, "the stream ids are used up") }
                append(next, stream, &output)
                calls[stream] = next
                next += 1
            }
            try flush()
            try nextResult { stream, result in
                guard let call = calls.removeValue(forKey: stream) else { return }
                try answered(call, result)
            }
        }
    }

    /// Opens a server stream and reads its first messages, as long as `continues` says that more of them belong
    /// together.
    func follow(
        service: Text, method: Text, _ request: some Message, continues: (UnsafeRawBufferPointer) throws -> Bool
    ) throws {
        guard let stream = takeStream() else { throw BenchError(.failed, "the stream ids are used up") }
        output.appendRequest(stream: stream, kind: .remoteClosed, service: service, method: method) {
            request.encode(into: &$0)
        }
        try flush()
        var isBeginning = true
        while isBeginning {
            try nextResult { _, result in
                switch result {
                case .ok(let message): isBeginning = try continues(message)
                case .refused(let reason): throw BenchError(.failed, "\(method): \(reason)")
                }
            }
        }
    }

    /// Waits for a RESPONSE or DATA.
    func nextResult(_ body: (UInt32, CallResult) throws -> Void) throws {
        var failure: (any Error)?
        var taken = false
        while !taken {
            try readFrame { header, payload in
                guard let result = Self.result(header, payload) else { return }
                taken = true
                do { try body(header.stream, result) } catch { failure = error }
            }
        }
        if let failure { throw failure }
    }

    /// The result in a frame. Nil for frames that are not answers.
    static func result(_ header: FrameHeader, _ payload: UnsafeRawBufferPointer) -> CallResult? {
        switch header.type {
        case .data: return .ok(message: payload)
        case .cancel: return .refused(reason: "CANCELLED_BY_SERVER")
        case .response:
            switch Answer(reading: payload) {
            case .ok(let message): return .ok(message: message)
            case .failure(let status): return .refused(reason: Answer.reason(ofStatus: status))
            case .malformed: return .refused(reason: "MALFORMED_ANSWER")
            }
        default: return nil
        }
    }
}

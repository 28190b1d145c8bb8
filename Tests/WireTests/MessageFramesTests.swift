import Base
import Testing
import Wire

@Suite struct MessageFramesTests {
    func response(_ bytes: [UInt8], _ body: (ResponseEnvelope) throws -> Void) throws {
        let header = try #require(bytes.withUnsafeBytes { FrameHeader.read($0) })
        #expect(header.type == .response)
        #expect(Int(header.payloadByteCount) == bytes.count - 10)
        try Array(bytes[10...]).withUnsafeBytes { try body(ResponseEnvelope(reading: $0, limits: MessageLimits())) }
    }

    @Test func `A response is what ttrpc's servers send`() {
        // Response{payload: 08 01} on stream 3, by hand: no status means OK.
        let expected: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 3, 2, 0, 0x12, 2, 8, 1]
        let payload: [UInt8] = [8, 1]
        #expect(
            bytes { output in payload.withUnsafeBytes { _ = output.appendResponse(stream: 3, payload: $0) } }
                == expected)
        #expect(bytes { output in output.appendResponse(stream: 3) { $0.append(contentsOf: payload) } } == expected)
    }

    @Test func `A request is what ttrpc's clients send`() {
        let expected =
            frame(1, stream: 5, field(1, "ttrpc.A") + field(2, "Do") + field(4, 1_000_000_000) + field(3, [8, 1]))
        let written = bytes { output in
            output.appendRequest(stream: 5, service: "ttrpc.A", method: "Do", timeoutNanoseconds: 1_000_000_000) {
                $0.append(contentsOf: [8, 1])
            }
        }
        #expect(written == expected)
    }

    @Test func `The kind of a stream is its request's flags`() {
        for (kind, flags) in [(StreamKind.unary, 0), (.remoteClosed, 1), (.remoteOpen, 2)] as [(StreamKind, UInt8)] {
            let written = bytes { output in
                output.appendRequest(stream: 1, kind: kind, service: "s", method: "m") { _ in }
            }
            #expect(written == frame(1, stream: 1, flags: flags, field(1, "s") + field(2, "m") + field(3, "")))
        }
    }

    @Test(arguments: [0, 1, 127, 128, 129, 16_383, 16_384, 16_385, 2_097_151, 2_097_152])
    func `A message of any size is written in place with the shortest length`(count: Int) throws {
        let message = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let written = bytes { output in
            output.append(contentsOf: [1, 2, 3])
            output.appendResponse(stream: 1) { $0.append(contentsOf: message) }
        }
        #expect(Array(written[..<3]) == [1, 2, 3])
        #expect(Array(written[13...]) == field(2, message))
        try response(Array(written[3...])) { #expect([UInt8]($0.payload) == message) }
        let copied = bytes { output in message.withUnsafeBytes { _ = output.appendResponse(stream: 1, payload: $0) } }
        try response(copied) { #expect([UInt8]($0.payload) == message) }
    }

    @Test func `Metadata is echoed before the message`() throws {
        let id = [UInt8]("req-1".utf8)
        let written = bytes { output in
            id.withUnsafeBytes { raw in
                let others = [OutgoingMetadata.Entry(key: "x-served-by", value: "a")]
                output.appendResponse(stream: 1, metadata: OutgoingMetadata(requestID: raw, others: others)) {
                    $0.append(contentsOf: [7])
                }
            }
        }
        try response(written) { envelope in
            #expect(envelope.status == nil)
            #expect([UInt8](envelope.payload) == [7])
            #expect(envelope.metadata.requestID?.string == "req-1")
            #expect(envelope.metadata.first("x-served-by")?.string == "a")
            #expect(envelope.metadata.count == 2)
        }
        let copied = bytes { output in
            id.withUnsafeBytes { raw in
                [7].withUnsafeBytes { payload in
                    _ = output.appendResponse(
                        stream: 1,
                        metadata: OutgoingMetadata(requestID: raw, others: [.init(key: "x-served-by", value: "a")]),
                        payload: UnsafeRawBufferPointer(rebasing: payload[..<1]))
                }
            }
        }
        #expect(copied == written)
    }

    @Test func `A message that fails while it is written leaves nothing behind`() {
        let written = bytes { output in
            output.append(9)
            do {
                try output.appendResponse(stream: 1) { message in
                    message.append(contentsOf: [UInt8](repeating: 7, count: 300))
                    throw CancellationError()
                }
                Issue.record("the error is gone")
            } catch {}
            output.append(10)
        }
        #expect(written == [9, 10])
    }

    @Test func `A request made of parts is as one that was read`() {
        let name = [UInt8]("Users".utf8)
        let key = [UInt8]("Bearer k".utf8)
        name.withUnsafeBytes { name in
            key.withUnsafeBytes { key in
                let request = RequestEnvelope(
                    service: name, method: name, payload: key, timeoutNanoseconds: 5,
                    metadata: Metadata(authorization: key, requestID: name))
                #expect(request.metadata.authorization?.string == "Bearer k")
                #expect(request.metadata.requestID?.string == "Users")
                #expect(request.metadata.idempotencyKey == nil)
                #expect(request.metadata.first("authorization") == nil, "only what came as entries is listed")
                #expect(Array(request.metadata).isEmpty)
            }
        }
    }

    @Test func `All known metadata of a request arrives`() throws {
        let value = [UInt8]("v".utf8)
        let written = bytes { output in
            value.withUnsafeBytes { raw in
                let metadata = OutgoingMetadata(
                    authorization: raw, traceparent: raw, requestID: raw, idempotencyKey: raw,
                    others: [.init(key: "other", value: "w")])
                output.appendRequest(stream: 1, service: "s", method: "m", metadata: metadata) { $0.append(1) }
            }
        }
        try Array(written[10...]).withUnsafeBytes { raw in
            let envelope = try RequestEnvelope(reading: raw, limits: MessageLimits())
            #expect(
                envelope.metadata.map { "\($0.key.string)=\($0.value.string)" }.sorted() == [
                    "authorization=v", "idempotency-key=v", "other=w", "traceparent=v", "x-request-id=v",
                ])
        }
    }

    @Test func `A frame above what the peer takes is not written`() {
        var fits: [Bool] = []
        func zeroes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
        let written = bytes { output in
            output.append(9)
            fits.append(output.appendResponse(stream: 1, payloadMax: 10) { $0.append(contentsOf: zeroes(8)) })
            fits.append(output.appendResponse(stream: 1, payloadMax: 10) { $0.append(contentsOf: zeroes(9)) })
            fits.append(output.appendData(stream: 1, payloadMax: 2) { $0.append(contentsOf: zeroes(3)) })
            zeroes(9).withUnsafeBytes { fits.append(output.appendResponse(stream: 1, payload: $0, payloadMax: 10)) }
        }
        #expect(fits == [true, false, false, false])
        #expect(written.count == 1 + 10 + 10)
    }

    @Test func `DATA holds one message, and its end none`() {
        #expect(bytes { output in output.appendData(stream: 3) { $0.append(5) } } == frame(3, stream: 3, [5]))
        #expect(bytes { output in output.appendData(stream: 3) { _ in } } == frame(3, stream: 3))
        #expect(bytes { $0.appendDataEnd(stream: 3) } == frame(3, stream: 3, flags: 5))
    }
}

import Base
import Testing
import Wire

@Suite struct ResponseEnvelopeTests {
    func read(_ bytes: [UInt8], _ body: (ResponseEnvelope) throws -> Void = { _ in }) throws {
        try bytes.withUnsafeBytes { try body(ResponseEnvelope(reading: $0, limits: MessageLimits())) }
    }

    @Test func `A response as ttrpc's servers write it is read`() throws {
        // Response{status: Status{code: 5, message: "no"}}, by hand.
        try read([0x0A, 0x06, 0x08, 0x05, 0x12, 0x02, 0x6E, 0x6F]) { envelope in
            #expect(envelope.status.map { [UInt8]($0) } == [8, 5, 0x12, 2, 0x6E, 0x6F])
            #expect(envelope.payload.isEmpty)
        }
        try read([]) { envelope in
            #expect(envelope.status == nil)
            #expect(envelope.payload.isEmpty)
            #expect(envelope.metadata.count == 0)
        }
    }

    @Test func `A response is held to the rules of a request`() {
        #expect(throws: EnvelopeError.duplicate(.status)) { try read(field(1, "") + field(1, "")) }
        #expect(throws: EnvelopeError.duplicate(.payload)) { try read(field(2, "") + field(2, "")) }
        #expect(throws: EnvelopeError.wrongWireType(.status)) { try read(field(1, 1)) }
        #expect(throws: EnvelopeError.wrongWireType(.payload)) { try read(field(2, 1)) }
        #expect(throws: EnvelopeError.wrongWireType(.metadata)) { try read(field(3, 1)) }
        #expect(throws: EnvelopeError.malformed) { try read([0x12, 0x05]) }
        #expect(throws: EnvelopeError.text(.key)) { try read(field(3, field(1, "A"))) }
        #expect(throws: EnvelopeError.tooManyUnknownFields) {
            try read(Array(repeating: field(9, 1), count: 33).flatMap { $0 })
        }
    }
}

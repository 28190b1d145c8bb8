import Base
import Testing
import Wire

@Suite struct EnvelopeErrorTests {
    @Test(
        arguments: [
            .malformed, .wrongWireType(.timeout), .duplicate(.service), .missing(.method), .negative(.timeout),
            .text(.key), .text(.value),
            .tooManyUnknownFields,
        ] as [EnvelopeError])
    func `A malformed envelope is the caller's mistake, and the field is named`(error: EnvelopeError) {
        #expect(error.failure.code == .invalidArgument)
        #expect(error.failure.reason == "MALFORMED_ENVELOPE")
        #expect(!error.failure.message.isEmpty)
    }

    @Test func `A wrong field is a field violation`() {
        #expect(EnvelopeError.duplicate(.timeout).failure.violations.map(\.field) == ["timeout_nano"])
    }

    @Test func `Too much metadata is a matter of limits`() {
        #expect(EnvelopeError.metadataTooLarge.failure.code == .resourceExhausted)
    }
}

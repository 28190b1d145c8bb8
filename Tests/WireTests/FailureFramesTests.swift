import Base
import Messages
import TestSupport
import Testing
import Wire

@Suite struct FailureFramesTests {
    func status(_ failure: Failure, requestID: String? = nil) throws -> GoogleStatus {
        let id = [UInt8]((requestID ?? "").utf8)
        let written = bytes { output in
            id.withUnsafeBytes { raw in
                output.appendFailure(
                    stream: 9, failure, metadata: OutgoingMetadata(requestID: requestID == nil ? nil : raw))
            }
        }
        let header = try #require(written.withUnsafeBytes { FrameHeader.read($0) })
        #expect(header == FrameHeader(payloadByteCount: UInt32(written.count - 10), stream: 9, type: .response))
        let response = try WireResponse(decoding: Array(written[10...]))
        #expect(response.payload.isEmpty)
        #expect(response.metadata == (requestID.map { [WireKeyValue(key: "x-request-id", value: Text($0))] } ?? []))
        return try #require(response.status)
    }

    func detail<Detail: Message>(_ status: GoogleStatus, _ name: String, as type: Detail.Type) throws -> Detail {
        let url = Text("type.googleapis.com/google.rpc.\(name)")
        let found = try #require(status.details.first { $0.typeURL == url })
        return try Detail(decoding: found.value)
    }

    @Test func `A failure carries its code, message and reason`() throws {
        let failure = Failure(.alreadyExists, "EMAIL_EXISTS", "The email is taken.").with("field", "email")
        let status = try status(failure)
        #expect(status.code == 6)
        #expect(status.message == "The email is taken.")
        #expect(status.details.count == 1)
        let info = try detail(status, "ErrorInfo", as: GoogleErrorInfo.self)
        #expect(info.reason == "EMAIL_EXISTS")
        #expect(info.domain == "postern")
        #expect(info.metadata.map(\.key) == ["field"])
        #expect(info.metadata.map(\.value) == ["email"])
    }

    @Test func `Every detail comes back through the generated types`() throws {
        var failure = Failure.invalid(.invalidEmail, field: "email", "has no @")
        failure.retryAfter = .milliseconds(1_500)
        failure.guidance = Failure.Guidance(locale: "de", message: "Bitte wenden Sie sich an uns.", url: "https://help")
        let status = try status(failure, requestID: "req-1")
        #expect(status.details.count == 6)
        let violations = try detail(status, "BadRequest", as: GoogleBadRequest.self).fieldViolations
        #expect(violations.map(\.field) == ["email"])
        #expect(violations.map(\.description) == ["has no @"])
        let delay = try detail(status, "RetryInfo", as: GoogleRetryInfo.self).retryDelay
        #expect(delay?.seconds == 1)
        #expect(delay?.nanos == 500_000_000)
        #expect(try detail(status, "LocalizedMessage", as: GoogleLocalizedMessage.self).locale == "de")
        #expect(try detail(status, "Help", as: GoogleHelp.self).links.map(\.url) == ["https://help"])
        #expect(try detail(status, "RequestInfo", as: GoogleRequestInfo.self).requestID == "req-1")
    }

    @Test(arguments: StatusCode.allCases.filter { $0 != .ok }) func `Every status code arrives`(code: StatusCode) throws
    {
        #expect(try status(Failure(code, "R", "m")).code == code.rawValue)
    }

    @Test func `Long texts take longer lengths`() throws {
        for count in [100, 127, 128, 1_999, 2_000] {
            let message = String(repeating: "m", count: count)
            #expect(try status(Failure(.internal, "R", message)).message == Text(message))
        }
    }

    /// A field's name out of a request may be as long as the request.
    @Test func `A failure is short, whatever it tells`() throws {
        for count in [2_001, 1 << 20, 20 << 20] {
            let words = String(repeating: "m", count: count)
            let status = try status(Failure.invalid(.invalidText, field: "f", words))
            #expect(status.message == Text("f: " + String(repeating: "m", count: 1_997)))
            let violations = try detail(status, "BadRequest", as: GoogleBadRequest.self).fieldViolations
            #expect(violations.map(\.description) == [Text(String(repeating: "m", count: 2_000))])
        }
        // The text is cut inside of a character, and is still text.
        let status = try status(Failure(.internal, "R", "m" + String(repeating: "\u{20AC}", count: 1_000)))
        #expect(status.message.string.hasSuffix("\u{20AC}\u{FFFD}"))
    }
}

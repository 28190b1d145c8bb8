import Base
import Testing
import Wire

@Suite struct RequestEnvelopeTests {
    /// An envelope copied out of its bytes.
    struct Copy: Equatable {
        var service = "s"
        var method = "m"
        var payload: [UInt8] = []
        var timeout: Int64 = 0
        var metadata: [String] = []
    }

    func read(_ bytes: [UInt8], limits: MessageLimits = MessageLimits()) throws(EnvelopeError) -> Copy {
        let result = bytes.withUnsafeBytes { raw -> Result<Copy, EnvelopeError> in
            do throws(EnvelopeError) {
                let envelope = try RequestEnvelope(reading: raw, limits: limits)
                return .success(
                    Copy(
                        service: envelope.service.string, method: envelope.method.string,
                        payload: [UInt8](envelope.payload), timeout: envelope.timeoutNanoseconds,
                        metadata: envelope.metadata.map { "\($0.key.string)=\($0.value.string)" }))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    func expect(
        _ error: EnvelopeError, _ bytes: [UInt8], limits: MessageLimits = MessageLimits(),
        at location: SourceLocation = #_sourceLocation
    ) {
        #expect(throws: error, sourceLocation: location) { try read(bytes, limits: limits) }
    }

    let call = field(1, "s") + field(2, "m")

    @Test func `A request as ttrpc's clients write it is read`() throws {
        // Request{service: "ttrpc.A", method: "Do", payload: 08 01, timeout_nano: 1_000_000_000,
        // metadata: [KeyValue{"authorization", "Bearer x"}]}, encoded by hand.
        let bytes: [UInt8] = [
            0x0A, 0x07, 0x74, 0x74, 0x72, 0x70, 0x63, 0x2E, 0x41, 0x12, 0x02, 0x44, 0x6F, 0x1A, 0x02, 0x08, 0x01, 0x20,
            0x80, 0x94, 0xEB, 0xDC, 0x03, 0x2A, 0x19, 0x0A, 0x0D, 0x61, 0x75, 0x74, 0x68, 0x6F, 0x72, 0x69, 0x7A, 0x61,
            0x74, 0x69, 0x6F, 0x6E, 0x12, 0x08, 0x42, 0x65, 0x61, 0x72, 0x65, 0x72, 0x20, 0x78,
        ]
        #expect(
            try read(bytes)
                == Copy(
                    service: "ttrpc.A", method: "Do", payload: [8, 1], timeout: 1_000_000_000,
                    metadata: ["authorization=Bearer x"]))
    }

    @Test func `Fields may come in any order, and most may be absent`() throws {
        #expect(try read(field(3, "p") + field(2, "m") + field(1, "s")) == Copy(payload: [112]))
        #expect(try read(call) == Copy())
    }

    @Test func `A timeout is not negative`() throws {
        #expect(try read(call + field(4, UInt64(Int64.max))).timeout == .max)
        expect(.negative(.timeout), call + field(4, 1 << 63))
        expect(.negative(.timeout), call + field(4, UInt64.max))
    }

    @Test func `Service and method are needed`() {
        expect(.missing(.service), field(2, "m"))
        expect(.missing(.method), field(1, "s"))
        expect(.missing(.service), field(1, "") + field(2, "m"))
        expect(.missing(.service), [])
    }

    @Test func `A singular field must not occur twice`() {
        expect(.duplicate(.service), call + field(1, "s"))
        expect(.duplicate(.method), call + field(2, "m"))
        expect(.duplicate(.payload), call + field(3, "") + field(3, ""))
        expect(.duplicate(.timeout), call + field(4, 1) + field(4, 1))
        expect(.duplicate(.key), call + field(5, field(1, "a") + field(1, "a")))
        expect(.duplicate(.value), call + field(5, field(1, "a") + field(2, "") + field(2, "")))
    }

    @Test func `The metadata keys that Postern reads must not occur twice, others may`() throws {
        for key in ["authorization", "traceparent", "x-request-id", "idempotency-key"] {
            expect(.duplicate(.metadata), call + entry(key, "1") + entry(key, "1"))
        }
        #expect(try read(call + entry("x-other", "1") + entry("x-other", "2")).metadata == ["x-other=1", "x-other=2"])
    }

    @Test func `A known field of another wire type is refused`() {
        for (number, name) in [(1, EnvelopeError.Field.service), (2, .method), (3, .payload), (5, .metadata)] {
            expect(.wrongWireType(name), call + field(UInt64(number), 1))
            expect(.wrongWireType(name), call + varint(UInt64(number) << 3 | 5) + [0, 0, 0, 0])
        }
        expect(.wrongWireType(.timeout), call + field(4, "1"))
        expect(.wrongWireType(.timeout), call + varint(4 << 3 | 1) + [UInt8](repeating: 0, count: 8))
        expect(.wrongWireType(.key), call + field(5, field(1, 1)))
        expect(.wrongWireType(.value), call + field(5, field(1, "a") + field(2, 1)))
    }

    @Test(arguments: [3, 4, 6, 7] as [UInt64], [1, 6, 100] as [UInt64])
    func `Groups and wire types that do not exist are refused`(wireType: UInt64, number: UInt64) {
        expect(.malformed, call + varint(number << 3 | wireType))
        expect(.malformed, call + varint(number << 3 | wireType) + [0, 0, 0, 0, 0, 0, 0, 0])
        expect(.malformed, call + field(5, field(1, "a") + varint(number << 3 | wireType)))
    }

    @Test func `Field number zero and numbers above 2^29 - 1 are refused`() throws {
        expect(.malformed, call + [0x00, 0x00])
        expect(.malformed, call + [0x02, 0x00])
        #expect(try read(call + field(1 << 29 - 1, 0)) == Copy())
        expect(.malformed, call + field(1 << 29, 0))
        expect(.malformed, call + field(1 << 60, 0))
    }

    @Test func `Varints are in their shortest form and at most ten bytes`() throws {
        expect(.malformed, [0x8A, 0x00, 0x01, 0x73] + field(2, "m"))  // tag
        expect(.malformed, [0x0A, 0x81, 0x00, 0x73] + field(2, "m"))  // length
        expect(.malformed, call + [0x20, 0x80, 0x00])  // value
        expect(.malformed, call + [0x20] + [UInt8](repeating: 0x80, count: 10) + [0x01])
        expect(.malformed, call + [0x20] + [UInt8](repeating: 0xFF, count: 9) + [0x02])
        expect(.malformed, call + [0x20] + [UInt8](repeating: 0xFF, count: 9))
        expect(.negative(.timeout), call + [0x20] + [UInt8](repeating: 0xFF, count: 9) + [0x01])
    }

    @Test func `A length past the end is refused, however large`() {
        for length in [2, 0x7F, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 62, 1 << 63, .max] as [UInt64] {
            expect(.malformed, field(2, "m") + [0x0A] + varint(length) + [0x73])
            expect(.malformed, call + field(5, [0x0A] + varint(length) + [0x73]))
        }
    }

    @Test func `An envelope cut anywhere is refused, or is what was there`() {
        let whole = call + field(3, "payload") + field(4, 300) + entry("traceparent", "00-1") + field(900, 70_000)
        for count in 0..<whole.count {
            do throws(EnvelopeError) {
                _ = try read(Array(whole[..<count]))
                #expect(count >= call.count, "an envelope without its method, of \(count) bytes")
            } catch {
                #expect([.malformed, .missing(.service), .missing(.method), .missing(.key)].contains(error))
            }
        }
    }

    @Test func `Thirty-two unknown fields are passed over, one more is too many`() throws {
        let unknown = [
            field(6, 1), field(7, "x"), varint(8 << 3 | 1) + [UInt8](repeating: 9, count: 8),
            varint(9 << 3 | 5) + [1, 2, 3, 4],
        ]
        #expect(try read(call + Array(repeating: unknown, count: 8).joined().joined()) == Copy())
        expect(.tooManyUnknownFields, call + Array(repeating: unknown, count: 8).joined().joined() + field(6, 1))
        let pair = field(1, "a") + Array(repeating: field(3, 1), count: 32).joined()
        #expect(try read(call + field(5, pair)).metadata == ["a="])
        expect(.tooManyUnknownFields, call + field(5, pair + field(3, 1)))
    }

    static let badText: [[UInt8]] = [
        [0xC0, 0x80], [0xED, 0xA0, 0x80], [0x80], [0xFF], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82], [0x00],
        [UInt8]("victim@example.com\0@evil.test".utf8),
    ]

    @Test(arguments: badText) func `Text is UTF-8 without NUL`(text: [UInt8]) throws {
        expect(.text(.service), field(1, text) + field(2, "m"))
        expect(.text(.method), field(1, "s") + field(2, text))
        expect(.text(.value), call + field(5, field(1, "a") + field(2, text)))
        expect(.text(.key), call + field(5, field(1, text)))
        // The payload is bytes.
        #expect(try read(call + field(3, text)).payload == text)
    }

    @Test func `Metadata keys are of 0-9 a-z _ . - and not empty`() {
        let allowed = [UInt8]("0123456789abcdefghijklmnopqrstuvwxyz_.-".utf8)
        for byte in UInt8.min...UInt8.max {
            let envelope = call + field(5, field(1, [byte]) + field(2, "v"))
            if allowed.contains(byte) {
                #expect(throws: Never.self) { try read(envelope) }
            } else {
                expect(.text(.key), envelope)
            }
        }
        expect(.missing(.key), call + field(5, field(2, "v")))
        expect(.text(.key), call + field(5, field(1, "")))
    }

    @Test func `Metadata is limited in entries and in bytes`() throws {
        let small = Array(repeating: entry("a", ""), count: 64).joined()
        #expect(try read(call + small).metadata.count == 64)
        expect(.metadataTooLarge, call + small + entry("a", ""))
        var limits = MessageLimits()
        limits.metadataMax = 100
        #expect(try read(call + entry("a", String(repeating: "v", count: 67)), limits: limits).metadata.count == 1)
        expect(.metadataTooLarge, call + entry("a", String(repeating: "v", count: 68)), limits: limits)
        expect(.metadataTooLarge, call + entry("a", "b") + entry("a", "b") + entry("a", "b"), limits: limits)
    }

    @Test func `The known keys are found at once, others by their name`() throws {
        let bytes =
            entry("x-other", "1") + entry("authorization", "Bearer x") + call + entry("traceparent", "00-a")
            + entry("x-request-id", "r") + entry("idempotency-key", "i") + entry("x-other", "2")
            + entry("authorizatiom", "3")
        try bytes.withUnsafeBytes { raw in
            let metadata = try RequestEnvelope(reading: raw, limits: MessageLimits()).metadata
            #expect(metadata.count == 7)
            #expect(metadata.authorization?.string == "Bearer x")
            #expect(metadata.traceparent?.string == "00-a")
            #expect(metadata.requestID?.string == "r")
            #expect(metadata.idempotencyKey?.string == "i")
            #expect(metadata.first("x-other")?.string == "1")
            #expect(metadata.first("authorization")?.string == "Bearer x")
            #expect(metadata.first("x-othe") == nil)
            #expect(metadata.first("x-missing") == nil)
        }
    }

    @Test func `Random envelopes come back as a plain encoder wrote them`() throws {
        var generator = SeededGenerator()
        print("RequestEnvelopeTests seed: \(generator.seed)")
        func text(_ count: ClosedRange<Int>) -> String {
            let scalars = "abcdefghijklmnopqrstuvwxyz.é漢😀"
            return String(
                (0..<Int.random(in: count, using: &generator)).map { _ in
                    scalars.randomElement(using: &generator) ?? "a"
                })
        }
        for _ in 0..<500 {
            var copy = Copy(service: text(1...40), method: text(1...20))
            var fields = [field(1, copy.service), field(2, copy.method)]
            if Bool.random(using: &generator) {
                copy.payload = (0..<Int.random(in: 0...300, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
                fields.append(field(3, copy.payload))
            }
            if Bool.random(using: &generator) {
                copy.timeout =
                    Int64.random(in: 0 ... .max, using: &generator) >> Int64.random(in: 0...63, using: &generator)
                fields.append(field(4, UInt64(bitPattern: copy.timeout)))
            }
            for index in 0..<Int.random(in: 0...10, using: &generator) {
                let value = text(0...30)
                fields.append(entry("key-\(index)", value))
            }
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                fields.append(field(UInt64.random(in: 6...(1 << 29 - 1), using: &generator), text(0...9)))
            }
            fields.shuffle(using: &generator)
            copy.metadata = fields.compactMap { bytes in
                bytes[0] == 0x2A ? Self.describeEntry(Array(bytes[2...])) : nil
            }
            let found = try read(fields.flatMap { $0 })
            #expect(found == copy, "seed \(generator.seed)")
        }
    }

    /// `key=value` of a KeyValue whose strings are shorter than 128 bytes.
    private static func describeEntry(_ bytes: [UInt8]) -> String {
        let keyEnd = 2 + Int(bytes[1])
        return String(decoding: bytes[2..<keyEnd], as: UTF8.self) + "="
            + String(decoding: bytes[(keyEnd + 2)...], as: UTF8.self)
    }

    @Test func `Random bytes are refused or read, and never trap`() {
        var generator = SeededGenerator()
        print("RequestEnvelopeTests seed: \(generator.seed)")
        let valid = call + field(3, "payload") + field(4, 1) + entry("authorization", "x") + entry("b", "y")
        for _ in 0..<20_000 {
            var bytes = valid
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
            }
            _ = try? read(bytes)
        }
    }
}

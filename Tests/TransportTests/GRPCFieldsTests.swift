import Base
import Testing
import Wire

@testable import Transport

/// The fields of requests and answers: timeouts, statuses, what a request's headers are read as.
@Suite struct GRPCFieldsTests {
    private func timeout(_ text: String) -> Int64? {
        [UInt8](text.utf8).withUnsafeBytes { GRPCTimeout.nanoseconds($0) }
    }

    @Test func `A timeout has digits and a unit`() {
        #expect(timeout("1n") == 1)
        #expect(timeout("0S") == 1)
        #expect(timeout("250m") == 250_000_000)
        #expect(timeout("3u") == 3_000)
        #expect(timeout("99999999S") == 99_999_999_000_000_000)
        #expect(timeout("2M") == 120_000_000_000)
        #expect(timeout("99999999H") == .max)
        for wrong in ["", "S", "1", "1s", "-1S", "123456789S", "1 S", "S1", "1.5S"] {
            #expect(timeout(wrong) == nil, "\(wrong)")
        }
    }

    @Test func `A message is printable ASCII, and everything else in percent`() {
        #expect(String(decoding: GRPCStatus.percentEncoded("a 100% ä\n"), as: UTF8.self) == "a 100%25 %C3%A4%0A")
        let long = GRPCStatus.percentEncoded(String(repeating: "ä", count: 5_000))
        #expect(long.count < 1_100 && long.count % 6 == 0)
    }

    @Test func `Spaces at the ends of a message are encoded, also where a long message is cut`() {
        let cases = [
            (" a b ", "%20a b%20"), ("  a  ", "%20 a %20"), (" ", "%20"), ("  ", "%20%20"), ("", ""), ("\ta", "%09a"),
        ]
        for (message, expected) in cases {
            #expect(String(decoding: GRPCStatus.percentEncoded(message), as: UTF8.self) == expected)
        }
        let long = GRPCStatus.percentEncoded("a" + String(repeating: " ", count: 5_000))
        #expect(long.count < 1_100 && long.last == UInt8(ascii: "0"))
    }

    /// The values that were read from header fields.
    private struct Summary {
        var service: String?
        var method: String?
        var authorization: String?
        var requestID: String?
        var traceparent: String?
        var idempotencyKey: String?
        var isGRPC = false
        var encoding = GRPCRequestHeaders.Encoding.identity
        var fault: EnvelopeError?
    }

    private func headers(_ fields: [(String, String)], limits: Limits = Limits()) -> Summary {
        var headers = GRPCRequestHeaders()
        for (name, value) in fields {
            [UInt8](name.utf8).withUnsafeBytes { name in
                [UInt8](value.utf8).withUnsafeBytes { headers.add(name, $0, limits: limits) }
            }
        }
        let (names, metadata) = (headers.names, headers.metadata)
        return Summary(
            service: text(names?.service), method: text(names?.method), authorization: text(metadata.authorization),
            requestID: text(metadata.requestID), traceparent: text(metadata.traceparent),
            idempotencyKey: text(metadata.idempotencyKey), isGRPC: headers.isGRPC, encoding: headers.encoding,
            fault: headers.fault)
    }

    private func text(_ bytes: UnsafeRawBufferPointer?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

    @Test func `The names of a call are in its path`() {
        for (path, service, method) in [("/a.B/C", "a.B", "C"), ("/a/b/C", "a/b", "C")] {
            let found = headers([(":path", path)])
            #expect(found.service == service && found.method == method)
        }
        for path in ["", "/", "//", "/a", "/a/", "//a", "a/b", "*"] {
            #expect(headers([(":path", path)]).service == nil, "\(path)")
        }
    }

    @Test func `What Postern reads is kept, and may come once`() {
        let known = [
            ("authorization", "Bearer a"), ("x-request-id", "b"), ("traceparent", "c"), ("idempotency-key", "d"),
        ]
        let found = headers(known + [("other", "e"), ("other", "f"), ("some-bin", "AA")])
        #expect(found.fault == nil)
        #expect(found.authorization == "Bearer a" && found.requestID == "b")
        #expect(found.traceparent == "c" && found.idempotencyKey == "d")
        for field in known { #expect(headers([field, field]).fault == .duplicate(.metadata)) }
    }

    @Test func `The content type and the encoding are those of gRPC`() {
        for type in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"] {
            #expect(headers([("content-type", type)]).isGRPC, "\(type)")
        }
        for type in ["application/json", "application/grpc+json", "application/grpc-web", "application/grpcx", ""] {
            #expect(!headers([("content-type", type)]).isGRPC, "\(type)")
        }
        #expect(headers([("grpc-encoding", "gzip")]).encoding == .gzip)
        #expect(headers([("grpc-encoding", "identity")]).encoding == .identity)
        #expect(headers([("grpc-encoding", "br")]).encoding == .unknown)
        #expect(headers([("grpc-timeout", "1")]).fault == .malformedTimeout)
    }

    @Test func `Metadata and headers are taken up to their bounds and not beyond`() {
        let limits = Limits()
        let most = Array(repeating: ("a", ""), count: limits.messages.metadataEntriesMax)
        #expect(headers(most).fault == nil)
        #expect(headers(most + [("a", "")]).fault == .metadataTooLarge)
        let long = String(repeating: "x", count: limits.messages.metadataMax - 33)
        #expect(headers([("a", long)]).fault == nil)
        #expect(headers([("a", long + "x")]).fault == .metadataTooLarge)
        // gRPC's own fields are not metadata, but they are headers.
        let list = String(repeating: "x", count: limits.headerListMax - 36)
        #expect(headers([("te", ""), ("te", list)]).fault == .metadataTooLarge)
        #expect(headers([("te", list + "xx")]).fault == nil)
        #expect(headers([("te", list + "xxx")]).fault == .metadataTooLarge)
    }
}

import Base
import Outbound
import Reactor
import TestSupport
import Testing

/// Answers that are compressed although no request asks for that. libcurl undoes compressions of the transfer, several
/// in a row, without a look at any limit of time, so that some kilobytes cost any amount of processor time.
@Suite struct CodedAnswerTests {
    /// "hello" as gzip.
    private static let packed: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x86,
        0xA6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00,
    ]
    private static let chunked = [UInt8]("5\r\nhello\r\n0\r\n\r\n".utf8)

    /// The answer to a request, from a server that sends `fields` and `body`.
    private func get(
        _ fields: String, _ body: [UInt8], _ change: (inout HTTPRequest) -> Void = { _ in }
    ) async throws -> HTTPAnswer {
        let reply = [UInt8]("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n".utf8) + body
        return try await withClient({ _ in .raw(reply) }) { client, server in
            var request = HTTPRequest(try #require(HTTPURL(Text(server.url + "/"))), policy: .local)
            change(&request)
            return try await client.send(request, tenant: "t", deadline: .soon)
        }
    }

    @Test(arguments: [
        "Transfer-Encoding: gzip", "transfer-encoding:gzip, gzip, gzip", "Transfer-Encoding: deflate",
        "Transfer-Encoding: br", "Transfer-Encoding: x-gzip", "Transfer-Encoding: identity, gzip",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: gzip",
    ])
    func `A compressed transfer is no answer`(_ fields: String) async throws {
        let error = await outboundError { _ = try await get(fields, Self.packed) }
        #expect(error == .broken)
        // The status may be wanted by itself; the body is never read.
        let kept = try await get(fields, Self.packed) { $0.keepsStatus = true }
        #expect(kept.status == 200 && kept.bodyError == .broken && kept.body.isEmpty)
        let unread = try await get(fields, Self.packed) { $0.isBodyNeeded = false }
        #expect(unread.status == 200)
    }

    @Test(arguments: ["gzip, chunked", "chunked, gzip", "gzip, gzip, gzip, gzip, chunked"])
    func `A compressed transfer in chunks is no answer`(_ codings: String) async throws {
        let body =
            [UInt8]("\(String(Self.packed.count, radix: 16))\r\n".utf8) + Self.packed + [UInt8]("\r\n0\r\n\r\n".utf8)
        let error = await outboundError { _ = try await get("Transfer-Encoding: \(codings)", body) }
        #expect(error == .broken)
    }

    @Test(arguments: ["Transfer-Encoding: chunked", "transfer-encoding:Chunked ", "TRANSFER-ENCODING: chunked"])
    func `Chunks are read`(_ fields: String) async throws {
        let answer = try await get(fields, Self.chunked)
        #expect(answer.body == [UInt8]("hello".utf8))
    }

    /// A compressed content is not undone: it is no JSON then.
    @Test func `A compressed content stays as it is`() async throws {
        let answer = try await get("Content-Encoding: gzip\r\nContent-Length: \(Self.packed.count)", Self.packed)
        #expect(answer.body == Self.packed)
    }
}

import Base
import Messages
import Testing

@Suite struct ProtobufWriterTests {
    @Test(arguments: [0, 1, 127, 128, 16_383, 16_384, 1 << 28, 1 << 32, 1 << 63, .max] as [UInt64])
    func `a varint is as long as said and as protobuf spells it`(value: UInt64) {
        var buffer = ByteBuffer()
        buffer.appendVarint(value)
        #expect(buffer.copyBytes() == EncodedBytes.varint(value))
        #expect(buffer.readableByteCount == varintByteCount(value))
    }

    @Test func `an envelope written field by field equals the encoded message`() {
        let inner = UsersGetRequest(tenantID: "acme", uid: "u1")
        let status = GoogleStatus(code: 5, message: "no such user")
        var response = ByteBuffer()
        response.appendMessageField(1, status)
        response.appendBytesField(2, inner.encoded())
        #expect(response.copyBytes() == WireResponse(status: status, payload: inner.encoded()).encoded())
        var request = ByteBuffer()
        request.appendBytesField(1, "postern.v1.Users" as Text)
        request.appendBytesField(2, "Get" as Text)
        request.appendBytesField(3, [] as [UInt8])
        request.appendVarintField(4, 1_000)
        let expected = WireRequest(service: "postern.v1.Users", method: "Get", timeoutNano: 1_000)
        #expect(request.copyBytes() == expected.encoded())
    }

    @Test func `zero and empty are left out, an empty message is not`() {
        var buffer = ByteBuffer()
        buffer.appendVarintField(1, 0)
        buffer.appendBytesField(2, Text.empty)
        #expect(buffer.copyBytes() == [])
        buffer.appendMessageField(3, User())
        #expect(buffer.copyBytes() == [0x1A, 0])
    }
}

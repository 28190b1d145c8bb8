import Base
import TestSupport
import Testing

@testable import Messages

/// Messages of singular numbers, texts and bytes are decoded without protobuf-c. What comes out is the same.
@Suite struct FlatDecodingTests {
    private func outcome<Value>(_ body: () throws(DecodeError) -> Value) -> Result<Value, DecodeError> {
        do throws(DecodeError) { return .success(try body()) } catch { return .failure(error) }
    }

    private func expectSame<Value: ConvertibleToC>(
        _ type: Value.Type, _ bytes: [UInt8], _ limits: MessageLimits = MessageLimits()
    ) {
        let (flat, unpacked) = bytes.withUnsafeBytes { bytes in
            (
                outcome { () throws(DecodeError) -> Value in try decodeFlat(bytes, limits: limits) },
                outcome { () throws(DecodeError) -> Value in try decodeByProtobufC(bytes, limits: limits) }
            )
        }
        #expect(flat == unpacked, "\(type) \(bytes)")
    }

    private func expectSame<Value: ConvertibleToC>(_ examples: [Value], _ random: inout SeededRandom) {
        #expect(Value.isFlat)
        for example in examples {
            let bytes = example.encoded()
            expectSame(Value.self, bytes)
            #expect((try? Value(decoding: bytes)) == example)
            for _ in 0..<2_000 { expectSame(Value.self, random.mutated(bytes)) }
        }
    }

    @Test func `Random changes of messages are decoded alike`() {
        var random = SeededRandom.printed()
        expectSame(
            [
                UsersGetRequest(tenantID: "acme", uid: "ada", includeLastRefresh: true),
                UsersGetRequest(uid: "é\u{1F600}"),
            ],
            &random)
        expectSame([TokensVerifyIdTokenRequest(idToken: "a.b.c", anyTenant: true)], &random)
        expectSame(
            [UsersListRequest(tenantID: "a", pageSize: .min, pageToken: "t"), UsersListRequest(pageSize: .max)], &random
        )
        expectSame([StoredCount(count: .min), StoredCount(count: .max)], &random)
        expectSame([StoredTenantUsage(bytes: -1, rows: 1)], &random)
        expectSame([WireWindow(credit: .max), WireWindow(credit: 1)], &random)
        expectSame([WireKeyValue(key: "k", value: "v")], &random)
    }

    @Test func `Secrets, enums and every limit are as with protobuf-c`() {
        var random = SeededRandom.printed()
        expectSame([AccountsSignInWithPasswordRequest(email: "a@b.example", password: Secret([1, 2, 3]))], &random)
        expectSame([WireCancel(code: .cancelled)], &random)
        var limits = MessageLimits()
        limits.fieldsPerMessageMax = 1
        let bytes = UsersGetRequest(tenantID: "a", uid: "b").encoded()
        expectSame(UsersGetRequest.self, bytes, limits)
        limits.fieldsPerMessageMax = 2
        limits.unknownFieldsMax = 1
        expectSame(UsersGetRequest.self, bytes + [0xF8, 0x01, 0x01], limits)
        expectSame(UsersGetRequest.self, bytes + [0xF8, 0x01, 0x01, 0xF8, 0x01, 0x01], limits)
    }

    @Test func `Messages with lists, oneofs or messages inside are not flat`() {
        #expect(!User.isFlat)
        #expect(!Scope.isFlat)
        #expect(!UsersGetResponse.isFlat)
        #expect(!StatsValue.isFlat)
    }
}

import Base
import Messages
import TestSupport
import Testing
import Wire

@testable import PosternBench

@Suite struct AnswerTests {
    /// The payload of a RESPONSE frame that `append` writes.
    private func envelope(_ append: (inout ByteBuffer) -> Void) -> [UInt8] {
        var buffer = ByteBuffer()
        append(&buffer)
        return Array(buffer.copyBytes()[FrameHeader.byteCount...])
    }

    private func describe(_ envelope: [UInt8]) -> String {
        envelope.withUnsafeBytes { bytes in
            switch Answer(reading: bytes) {
            case .ok(let message): "ok \(message.count)"
            case .failure(let status): Answer.reason(ofStatus: status)
            case .malformed: "malformed"
            }
        }
    }

    @Test func `An answer with a message and metadata is OK`() {
        let message = [UInt8](repeating: 7, count: 300)
        let bytes = envelope { buffer in
            [UInt8]("abc".utf8).withUnsafeBytes { id in
                message.withUnsafeBytes {
                    _ = buffer.appendResponse(stream: 1, metadata: OutgoingMetadata(requestID: id), payload: $0)
                }
            }
        }
        #expect(describe(bytes) == "ok 300")
        #expect(describe([]) == "ok 0")
    }

    @Test func `A status with code 0 is OK as well`() {
        let bytes = WireResponse(status: GoogleStatus(), payload: [1, 2]).encoded()
        #expect(describe(bytes) == "ok 2")
    }

    @Test func `A failure gives its reason`() {
        let failure = Failure(.notFound, "USER_NOT_FOUND", "There is no such user.")
        #expect(describe(envelope { $0.appendFailure(stream: 1, failure) }) == "USER_NOT_FOUND")
    }

    @Test func `A failure without a reason gives its code's name`() {
        let bytes = WireResponse(status: GoogleStatus(code: 14, message: "gone")).encoded()
        #expect(describe(bytes) == "UNAVAILABLE")
    }

    @Test func `An answer that is cut off is malformed`() {
        let whole = WireResponse(payload: [UInt8](repeating: 1, count: 200)).encoded()
        for count in 1..<whole.count { #expect(describe(Array(whole[..<count])) == "malformed", "\(count) bytes") }
    }

    @Test func `Tokens are found in a sign-up's and a refresh's answer alike`() {
        let tokens = TokenPair(idToken: "an.id.token", refreshToken: "refresh", idTokenExpiresAtMicros: 5)
        let answers = [
            AccountsSignUpResponse(user: User(tenantID: "acme", uid: "u"), tokens: tokens).encoded(),
            TokensRefreshResponse(uid: "u", tokens: tokens, outcome: .rotated).encoded(),
        ]
        for answer in answers {
            answer.withUnsafeBytes { bytes in
                let found = TokenSlices(inAnswer: bytes)
                #expect(found.map { [UInt8]($0.idToken) } == [UInt8]("an.id.token".utf8))
                #expect(found.map { [UInt8]($0.refreshToken) } == [UInt8]("refresh".utf8))
            }
        }
        let without = TokensRefreshResponse(uid: "u").encoded()
        without.withUnsafeBytes { #expect(TokenSlices(inAnswer: $0)?.idToken.count == nil) }
    }
}

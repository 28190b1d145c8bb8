import Base
import TestSupport
import Testing

@Suite struct FailureTests {
    @Test func aFailureAboutAFieldNamesIt() {
        let failure = Failure.invalid(.invalidEmail, field: "email", "is too long")
        #expect(failure.code == .invalidArgument && failure.reason == "INVALID_EMAIL")
        #expect(failure.message == "email: is too long")
        #expect(failure.violations == [.init(field: "email", description: "is too long")])
        #expect(failure.metadata.isEmpty && failure.retryAfter == nil && failure.guidance == nil)
    }

    @Test func metadataIsAddedToACopyInOrder() {
        let failure = Failure(.notFound, "X", "x", metadata: [.init("a", "1")])
        #expect(failure.with("b", "2").with("a", "3").metadata == [.init("a", "1"), .init("b", "2"), .init("a", "3")])
        #expect(failure.metadata == [.init("a", "1")])
    }

    @Test func codesHaveTheNumbersAndNamesOfGRPC() {
        #expect(StatusCode.allCases.map(\.rawValue) == Array(0...16))
        #expect(StatusCode.permissionDenied.name == "PERMISSION_DENIED" && StatusCode.permissionDenied.rawValue == 7)
        #expect(StatusCode.unauthenticated.name == "UNAUTHENTICATED" && StatusCode.unauthenticated.rawValue == 16)
        #expect(Set(StatusCode.allCases.map(\.name)).count == 17)
    }
}

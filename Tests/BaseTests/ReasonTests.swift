import Base
import TestSupport
import Testing

@Suite struct ReasonTests {
    @Test func aReasonIsFoundByTheNameThatTravels() {
        #expect(Reason(name: "USER_NOT_FOUND") == .userNotFound && Reason.userNotFound.name == "USER_NOT_FOUND")
        #expect(Reason(name: "user_not_found") == nil && Reason(name: "") == nil)
        for reason in Reason.allCases { #expect(Reason(name: reason.name) == reason) }
        #expect(Set(Reason.allCases.map(\.name)).count == Reason.allCases.count)
    }

    @Test func aFailureHasTheStatusOfItsReasonUnlessItSaysAnother() {
        #expect(Failure(.emailNotFound, "").code == .unauthenticated)
        #expect(Failure(.emailNotFound, as: .notFound, "").code == .notFound)
        #expect(Reason.allCases.allSatisfy { $0.status != .ok && $0.status != .unknown })
        // A reason about a field is an invalid argument.
        for reason in Reason.allCases where reason.name.hasPrefix("INVALID_") && reason.status == .invalidArgument {
            #expect(Failure.invalid(reason, field: "f", "").code == .invalidArgument)
        }
    }

    @Test func aReasonOfANewerServerIsKeptAsItIs() {
        let failure = Failure(received: .aborted, reason: "NEW_WORD", "m")
        #expect(failure.reason == "NEW_WORD" && failure.knownReason == nil && failure.code == .aborted)
        #expect(!failure.is(.accountChanged))
        let known = Failure(received: .aborted, reason: "ACCOUNT_CHANGED", "m")
        #expect(known.knownReason == .accountChanged && known.is(.userNotFound, .accountChanged))
    }
}

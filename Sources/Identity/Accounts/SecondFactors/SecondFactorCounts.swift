public import Base

/// Counts the outcomes of the sign-ins that were asked for a second factor.
public final class SecondFactorCounts: Sendable {
    public enum Factor: String, Sendable, CaseIterable {
        case totp, phone
        case recoveryCode = "recovery_code"

        init(_ shown: ShownFactor) {
            switch shown {
            case .totp: self = .totp
            case .phone: self = .phone
            case .recoveryCode: self = .recoveryCode
            }
        }
    }

    public struct Outcomes: Sendable {
        public let right = Counter()
        public let wrong = Counter()
        /// Codes that were not judged: the guesses are spent, the sign-in is too old, the disk is full.
        public let refused = Counter()
    }

    /// Sign-ins that were told to show a factor, or to enroll one.
    public let asked = Counter()
    private let outcomes = Factor.allCases.map { _ in Outcomes() }

    public init() {}

    // Proof: there is one of each case.
    public func outcomes(of factor: Factor) -> Outcomes { outcomes[Factor.allCases.firstIndex(of: factor)!] }

    func note(_ shown: ShownFactor, _ failure: Failure?) {
        let outcomes = outcomes(of: Factor(shown))
        guard let failure else { return outcomes.right.add() }
        if failure.is(.invalidCode) { outcomes.wrong.add() } else { outcomes.refused.add() }
    }
}

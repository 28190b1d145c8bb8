public import Base
public import Messages

extension PasswordPolicy {
    /// INVALID_PASSWORD_POLICY.
    public func check() throws(Failure) {
        guard minLength == 0 || (6...64).contains(minLength) else {
            throw .invalid(.invalidPasswordPolicy, field: "password_policy.min_length", "must be 6 to 64")
        }
    }

    /// The requirements that a password does not meet, by the names of Identity Platform's policy; empty = it meets
    /// all.
    ///
    /// Characters are Unicode scalars; classes are those of ASCII, everything else is a symbol.
    public func unmet(by password: Secret) -> [String] {
        let scalars = password.withBytes { Array(String(decoding: $0, as: UTF8.self).unicodeScalars) }
        func has(_ range: ClosedRange<UInt32>) -> Bool { scalars.contains { range.contains($0.value) } }
        let (lower, upper, digits): (ClosedRange<UInt32>, ClosedRange<UInt32>, ClosedRange<UInt32>) =
            (0x61...0x7A, 0x41...0x5A, 0x30...0x39)
        let hasSymbol = scalars.contains { scalar in
            !lower.contains(scalar.value) && !upper.contains(scalar.value) && !digits.contains(scalar.value)
        }
        let rules: [(String, Bool)] = [
            ("min_length", scalars.count >= Int(minLength)), ("lowercase", !requireLowercase || has(lower)),
            ("uppercase", !requireUppercase || has(upper)), ("digit", !requireDigit || has(digits)),
            ("symbol", !requireSymbol || hasSymbol),
        ]
        return rules.filter { !$0.1 }.map(\.0)
    }

    /// PASSWORD_DOES_NOT_MEET_REQUIREMENTS with all unmet requirements.
    public func require(_ password: Secret) throws(Failure) {
        let unmet = unmet(by: password)
        guard !unmet.isEmpty else { return }
        let names = unmet.joined(separator: ",")
        let length = unmet.contains("min_length") ? " (at least \(minLength) characters)" : ""
        throw Failure.invalid(
            .passwordDoesNotMeetRequirements, field: "password",
            "does not meet this tenant's rules: \(names)\(length)"
        ).with("unmet", names)
    }
}

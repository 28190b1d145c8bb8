import Base
import Messages
import Rules
import Store

/// The second factors of an import's row: checked, and the secrets of authenticator apps sealed.
struct ImportedFactors: Sendable {
    let factors: [SecondFactor]
    let totps: [StoredTotp]

    private static let idByteCountMax = 64
    private static let totpSecretByteCounts = 10...64

    /// INVALID_SECOND_FACTOR, INVALID_DISPLAY_NAME, INVALID_PHONE_NUMBER.
    init(
        _ rows: [ImportSecondFactor], of key: UserKey, secrets: FactorSecrets, limits: Limits, now: Timestamp
    ) throws {
        guard rows.count <= SecondFactorRules.factorsMax else {
            throw Self.invalid("must be at most \(SecondFactorRules.factorsMax)")
        }
        var (factors, totps): ([SecondFactor], [StoredTotp]) = ([], [])
        for row in rows {
            var factor = row.factor ?? SecondFactor()
            try SecondFactorRules.checkDisplayName(factor.displayName, limits: limits)
            if factor.factorID.isEmpty { factor.factorID = secrets.random.alphanumeric(28) }
            guard factor.factorID.byteCount <= Self.idByteCountMax,
                !factors.contains(where: { $0.factorID == factor.factorID })
            else { throw Self.invalid("need ids of their own, of at most \(Self.idByteCountMax) bytes") }
            // Devices are known from the enrolment on: until a time to come, none would be.
            factor.enrolledAtMicros = Timestamp.imported(factor.enrolledAtMicros, now: now) ?? now.microseconds
            switch factor.kind {
            case .phone:
                guard !factor.phoneNumber.isEmpty, row.totpSecret.isEmpty else {
                    throw Self.invalid("of the kind PHONE need a phone_number and no secret")
                }
                // As at an enrolment: no code could be sent to another number.
                guard let number = PhoneNumber(factor.phoneNumber) else {
                    throw Failure.invalid(
                        .invalidPhoneNumber, field: "second_factors",
                        "need a phone_number with a country's calling code and of a length that exists there")
                }
                guard !factors.contains(where: { $0.phoneNumber == number.text }) else {
                    throw Self.invalid("of the kind PHONE need a phone_number each of its own")
                }
                factor.phoneNumber = number.text
            case .totp:
                guard Self.totpSecretByteCounts.contains(row.totpSecret.byteCount), factor.phoneNumber.isEmpty else {
                    throw Self.invalid("of the kind TOTP need a totp_secret of 10 to 64 bytes")
                }
                let sealed = try secrets.seal(row.totpSecret, of: key)
                totps.append(StoredTotp(factorID: factor.factorID, sealedSecret: sealed))
            case .unspecified: throw Self.invalid("need a kind")
            }
            factors.append(factor)
        }
        (self.factors, self.totps) = (factors, totps)
    }

    private static func invalid(_ problem: String) -> Failure {
        .invalid(.invalidSecondFactor, field: "second_factors", problem)
    }
}

extension WriteTransaction {
    /// Gives the factors to an account that has none. The caller writes the account.
    func putFactors(_ imported: ImportedFactors, to account: inout Account) throws {
        guard !imported.factors.isEmpty else { return }
        account.user.secondFactors = imported.factors
        try put(Tables.secondFactors, account.key, StoredSecondFactors(totps: imported.totps))
    }
}

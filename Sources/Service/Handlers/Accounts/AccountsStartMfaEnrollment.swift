import Base
import Identity
import Messages
import Rules

/// postern.v1.Accounts/StartMfaEnrollment
enum AccountsStartMfaEnrollment: SlowMethod {
    static func handle(
        _ request: AccountsStartMfaEnrollmentRequest, _ call: Call
    ) async throws -> AccountsStartMfaEnrollmentResponse {
        let wanted: SecondFactorEnrollments.WantedFactor? =
            switch request.factor {
            case .phoneNumber(let number): .phone(number, locale: request.locale)
            case .totp: .totp
            case nil: nil
            }
        let started = try await call.project.secondFactorEnrollments.start(
            wanted, call.endUserRequest(idToken: request.idToken, endUserIP: request.endUserIP))
        switch started {
        case .phone(let sent):
            return AccountsStartMfaEnrollmentResponse(
                sessionInfo: sent.sessionInfo, phoneNumber: sent.number.text,
                expiresAtMicros: sent.expiresAt.microseconds)
        case .totp(let totp, let sessionInfo, let expiresAt):
            return AccountsStartMfaEnrollmentResponse(
                sessionInfo: sessionInfo, totp: totp, expiresAtMicros: expiresAt.microseconds)
        }
    }

    static func endUser(of request: AccountsStartMfaEnrollmentRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }
}

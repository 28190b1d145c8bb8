import Base
import Identity
import Messages
import TestSupport

// Phone numbers in calls short enough to read in a test.

extension IdentityClient {
    /// A code that went out, as whoever has the phone sees it.
    struct PhoneCode {
        let sessionInfo: Secret
        let code: Secret
    }

    func allowPhones(_ paths: [Text] = [], _ change: (inout Messages.Tenant) -> Void = { _ in }) throws {
        try setTenant(["enable_phone_signin", "enable_anonymous_user"] + paths) {
            $0.enablePhoneSignin = true
            $0.enableAnonymousUser = true
            change(&$0)
        }
    }

    @discardableResult
    func sendCode(
        to number: Text, idToken: Text = .empty, from address: Text = .empty, locale: Text = .empty
    ) throws -> AccountsSendVerificationCodeResponse {
        // The outbox lists by time, so no two messages of a test may have the same time.
        server.clock.advance(by: .milliseconds(1))
        return try client.call(
            "postern.v1.Accounts/SendVerificationCode",
            AccountsSendVerificationCodeRequest(
                phoneNumber: number, idToken: idToken, endUserIP: address, locale: locale))
    }

    /// The newest SMS, if it went to `number`.
    func newestCode(to number: Text) throws -> Secret {
        guard let sms = try mails().first, sms.message.to == number, !sms.contents.code.isEmpty else {
            throw Failure(.notFound, "no SMS", "")
        }
        return Secret(sms.contents.code.bytes)
    }

    func code(to number: Text, idToken: Text = .empty) throws -> PhoneCode {
        let sent = try sendCode(to: number, idToken: idToken)
        return PhoneCode(sessionInfo: sent.sessionInfo, code: try newestCode(to: number))
    }

    func signIn(
        _ code: PhoneCode, linkingTo idToken: Text = .empty, change: Bool = false
    ) throws -> AccountsSignInWithPhoneNumberResponse {
        try client.call(
            "postern.v1.Accounts/SignInWithPhoneNumber",
            AccountsSignInWithPhoneNumberRequest(
                sessionInfo: code.sessionInfo, code: code.code, idToken: idToken, change: change))
    }

    func signIn(phone number: Text) throws -> AccountsSignInWithPhoneNumberResponse {
        try signIn(try code(to: number))
    }

    func signIn(
        temporaryProof: Text, _ number: Text, linkingTo idToken: Text = .empty
    ) throws -> AccountsSignInWithPhoneNumberResponse {
        try client.call(
            "postern.v1.Accounts/SignInWithPhoneNumber",
            AccountsSignInWithPhoneNumberRequest(
                temporaryProof: Secret(temporaryProof.bytes), phoneNumber: number, idToken: idToken))
    }

    func configureSMS(_ paths: [Text], _ change: (inout SmsConfig) -> Void) throws {
        var config = SmsConfig()
        change(&config)
        let _: SmsConfigsUpdateResponse = try client.call(
            "postern.v1.SmsConfigs/Update",
            SmsConfigsUpdateRequest(config: config, updateMask: ProtobufFieldMask(paths: paths)))
    }
}

extension IdentityClient.PhoneCode {
    /// The same session with a wrong code, `distance` from the right one.
    func wrong(_ distance: Int = 1) -> IdentityClient.PhoneCode {
        let value = code.withBytes { $0.reduce(0) { $0 * 10 + Int($1 - 0x30) } }
        let digits = String((value + distance) % 1_000_000)
        return .init(
            sessionInfo: sessionInfo, code: Secret(String(repeating: "0", count: 6 - digits.count) + digits))
    }
}

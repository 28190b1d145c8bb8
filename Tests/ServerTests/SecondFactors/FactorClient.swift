import Base
import JSON
import Messages
import Rules
import TestSupport
import Testing
import Wire

// Second factors in calls short enough to read in a test.

/// A user with an authenticator app.
struct AppUser {
    let email: Text
    let uid: Text
    let factorID: Text
    let secret: Secret
    let recoveryCodes: [Secret]
    /// The tokens of the session in which the app was enrolled.
    var tokens: TokenPair

    /// The code of now, or of a step `steps` away.
    func code(_ server: TestServer, steps: Int64 = 0) -> Secret {
        let step = TOTP.step(at: server.clock.clock.now()) + steps
        return Secret(TOTP.code(secret: secret, counter: UInt64(step)))
    }

    /// A code of six digits that is none of the right codes around now.
    func wrongCode(_ server: TestServer, _ number: Int = 0) -> Secret {
        let right = (-2...2).map { code(server, steps: $0) }
        return (0...).lazy.map { Secret(digits(number + $0 * 1_013)) }.first { !right.contains($0) } ?? .empty
    }
}

func digits(_ number: Int) -> String {
    let digits = String(number % 1_000_000)
    return String(repeating: "0", count: 6 - digits.count) + digits
}

extension IdentityClient {
    func setFactors(_ state: SecondFactorState, _ kinds: [SecondFactorKind] = []) throws {
        try setTenant(["second_factor_state", "allowed_second_factors"]) {
            $0.secondFactorState = state
            $0.allowedSecondFactors = kinds
        }
    }

    /// A user with a verified email who is signed in.
    func verifiedUser(_ email: Text) throws -> TokenPair {
        _ = try signUp(email)
        let uid = try find(email).uid
        try update(uid, ["email_verified"]) { $0.emailVerified = true }
        return try #require(try signIn(email).tokens)
    }

    func find(_ email: Text) throws -> User {
        let found: UsersGetByEmailResponse = try client.call(
            "postern.v1.Users/GetByEmail", UsersGetByEmailRequest(email: email))
        return found.user ?? User()
    }

    func startApp(_ idToken: Text) throws -> AccountsStartMfaEnrollmentResponse {
        try client.call(
            "postern.v1.Accounts/StartMfaEnrollment",
            AccountsStartMfaEnrollmentRequest(idToken: idToken, factor: .totp(TotpEnrollment())))
    }

    func startPhone(_ number: Text, _ idToken: Text) throws -> AccountsStartMfaEnrollmentResponse {
        server.clock.advance(by: .milliseconds(1))
        return try client.call(
            "postern.v1.Accounts/StartMfaEnrollment",
            AccountsStartMfaEnrollmentRequest(idToken: idToken, factor: .phoneNumber(number)))
    }

    func finalize(
        _ started: AccountsStartMfaEnrollmentResponse, _ code: Secret, _ idToken: Text, name: Text = "app"
    ) throws -> AccountsFinalizeMfaEnrollmentResponse {
        server.clock.advance(by: .milliseconds(1))
        return try client.call(
            "postern.v1.Accounts/FinalizeMfaEnrollment",
            AccountsFinalizeMfaEnrollmentRequest(
                idToken: idToken, sessionInfo: started.sessionInfo, code: code, displayName: name))
    }

    /// The secret behind the base32 that an authenticator app is given.
    static func secret(_ totp: TotpSecret?) -> Secret {
        var (bits, count, bytes): (UInt64, Int, [UInt8]) = (0, 0, [])
        totp?.sharedSecret.withBytes { text in
            for character in text {
                let value = character >= 0x41 ? character - 0x41 : character - 0x32 + 26
                bits = (bits << 5 | UInt64(value)) & 0xFFFF
                count += 5
                if count >= 8 {
                    count -= 8
                    bytes.append(UInt8(truncatingIfNeeded: bits >> UInt64(count)))
                }
            }
        }
        return Secret(bytes)
    }

    /// A user who enrolled an authenticator app; a minute later, so that its next code is a new one.
    func appUser(_ email: Text = "ada@example.com") throws -> AppUser {
        try enrollApp(email, try verifiedUser(email).idToken)
    }

    func enrollApp(_ email: Text, _ idToken: Text) throws -> AppUser {
        let started = try startApp(idToken)
        var user = AppUser(
            email: email, uid: try lookup(idToken).uid, factorID: "", secret: Self.secret(started.totp),
            recoveryCodes: [], tokens: TokenPair())
        let done = try finalize(started, user.code(server), idToken)
        user = AppUser(
            email: email, uid: user.uid, factorID: done.factorID, secret: user.secret,
            recoveryCodes: done.recoveryCodes, tokens: try #require(done.tokens))
        server.clock.advance(by: .seconds(60))
        return user
    }

    func enrollPhone(_ number: Text, _ idToken: Text) throws -> AccountsFinalizeMfaEnrollmentResponse {
        let started = try startPhone(number, idToken)
        return try finalize(started, try newestCode(to: number), idToken, name: "phone")
    }

    // MARK: Signing in

    /// The pending credential of a sign-in that was refused for want of a second factor.
    func pending(_ body: () throws -> Void) throws -> Secret {
        let refused = failure(body)
        guard refused.reason == "SECOND_FACTOR_REQUIRED" else { throw refused }
        return Secret(try #require(refused.metadata("pending_credential")))
    }

    func pending(_ user: AppUser) throws -> Secret { try pending { _ = try signIn(user.email) } }

    func finish(
        _ pending: Secret, _ factorID: Text, _ proof: AccountsFinalizeMfaSignInRequest.Proof, tenantID: Text = .empty,
        deviceToken: Text = .empty, key: Text = .empty
    ) throws -> AccountsFinalizeMfaSignInResponse {
        try client.call(
            "postern.v1.Accounts/FinalizeMfaSignIn",
            AccountsFinalizeMfaSignInRequest(
                tenantID: tenantID, pendingCredential: pending, factorID: factorID, proof: proof,
                deviceToken: deviceToken),
            metadata: key.isEmpty ? [] : [OutgoingMetadata.Entry(key: "idempotency-key", value: key)])
    }

    func finish(_ pending: Secret, _ user: AppUser, _ code: Secret? = nil) throws -> AccountsFinalizeMfaSignInResponse {
        try finish(pending, user.factorID, .totpCode(code ?? user.code(server)))
    }

    func startSMS(_ pending: Secret, _ factorID: Text) throws -> AccountsStartMfaSignInResponse {
        server.clock.advance(by: .milliseconds(1))
        return try client.call(
            "postern.v1.Accounts/StartMfaSignIn",
            AccountsStartMfaSignInRequest(pendingCredential: pending, factorID: factorID))
    }

    /// What an ID token says under `firebase`.
    func firebase(_ idToken: Text) throws -> JSONValue {
        let verified: TokensVerifyIdTokenResponse = try client.call(
            "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: idToken))
        return try #require(try JSONValue(parsing: verified.claimsJSON)["firebase"])
    }
}

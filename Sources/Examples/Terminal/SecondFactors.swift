import PosternAuth

/// Second factors in the terminal: asking for one, adding and removing them.
struct SecondFactors {
    let auth: Auth

    /// Runs `body`. If the server wants a second factor for it, asks for one or adds the first one.
    func asked(by body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as AuthError {
            if let resolver = error.multiFactorResolver {
                try await finish(resolver)
            } else if let enrollment = error.multiFactorEnrollment {
                print("nobody signs in here without a second factor; add one")
                try await enroll(enrollment)
            } else {
                throw error
            }
        }
    }

    // MARK: Signing in

    private func finish(_ resolver: MultiFactorResolver) async throws {
        print("a second factor is required; yours are:")
        for (number, hint) in zip(1..., resolver.hints) { print("  \(number)  \(Self.describe(hint))") }
        guard let choice = Terminal.ask("number of a factor, or a recovery code: ") else { return }
        guard let (_, hint) = zip(1..., resolver.hints).first(where: { "\($0.0)" == choice }) else {
            try await resolver.resolveSignIn(
                with: RecoveryCodeMultiFactorGenerator.assertionForSignIn(withRecoveryCode: choice))
            return
        }
        switch hint {
        case let phone as PhoneMultiFactorInfo:
            let provider = PhoneAuthProvider.provider(auth: auth)
            let verificationID = try await provider.verifyPhoneNumber(
                with: phone, multiFactorSession: resolver.session)
            try await untilRight { code in
                let credential = provider.credential(withVerificationID: verificationID, verificationCode: code)
                try await resolver.resolveSignIn(with: PhoneMultiFactorGenerator.assertion(with: credential))
            }
        case let app:
            try await untilRight { code in
                let assertion = TOTPMultiFactorGenerator.assertionForSignIn(
                    withEnrollmentID: app.uid, oneTimePassword: code)
                try await resolver.resolveSignIn(with: assertion)
            }
        }
    }

    /// Asks for a code until it is right, until the server has seen too many wrong ones, or until nothing is typed.
    private func untilRight(_ body: (String) async throws -> Void) async throws {
        while let code = Terminal.ask("return to stop, or the code: "), !code.isEmpty {
            do {
                return try await body(code)
            } catch AuthErrorCode.invalidVerificationCode {
                print("that is not the code")
            }
        }
    }

    // MARK: Adding and removing

    /// `kind`: "phone NUMBER"; anything else: an authenticator app.
    func add(_ kind: String, to user: User) async throws {
        let session = try await user.multiFactor.session()
        try await add(kind, session, verifyEmail: { try await user.sendEmailVerification() }) { assertion in
            try await user.multiFactor.enroll(with: assertion)
        }
    }

    private func enroll(_ enrollment: MultiFactorEnrollment) async throws {
        let kind = Terminal.ask("\"phone NUMBER\", or return for an authenticator app: ") ?? ""
        try await add(kind, enrollment.session, verifyEmail: { try await enrollment.sendEmailVerification() }) {
            assertion in
            try await enrollment.enroll(with: assertion)
        }
    }

    private func add(
        _ kind: String, _ session: MultiFactorSession, verifyEmail: () async throws -> Void,
        _ enroll: (MultiFactorAssertion) async throws -> MultiFactorEnrollmentResult
    ) async throws {
        let words = kind.split(separator: " ", maxSplits: 1).map(String.init)
        do {
            if words.count == 2, words[0] == "phone" {
                try await addPhone(words[1], session, enroll)
            } else {
                try await addAuthenticator(session, enroll)
            }
        } catch AuthErrorCode.unverifiedEmail {
            print("a second factor needs a verified email; a mail is on its way")
            try await verifyEmail()
            guard Terminal.ask("open the link that was mailed to you, then press return ") != nil else { return }
            try await add(kind, session, verifyEmail: verifyEmail, enroll)
        }
    }

    private func addAuthenticator(
        _ session: MultiFactorSession, _ enroll: (MultiFactorAssertion) async throws -> MultiFactorEnrollmentResult
    ) async throws {
        let secret = try await TOTPMultiFactorGenerator.generateSecret(with: session)
        print("scan this with an authenticator app:")
        TerminalQRCode(secret.qrCodeURL)?.lines.forEach { print($0) }
        print("or type its secret: \(secret.sharedSecretKey())")
        try await untilRight { code in
            let assertion = TOTPMultiFactorGenerator.assertionForEnrollment(with: secret, oneTimePassword: code)
            tell(try await enroll(assertion))
        }
    }

    private func addPhone(
        _ number: String, _ session: MultiFactorSession,
        _ enroll: (MultiFactorAssertion) async throws -> MultiFactorEnrollmentResult
    ) async throws {
        let provider = PhoneAuthProvider.provider(auth: auth)
        let verificationID = try await provider.verifyPhoneNumber(number, multiFactorSession: session)
        try await untilRight { code in
            let credential = provider.credential(withVerificationID: verificationID, verificationCode: code)
            tell(try await enroll(PhoneMultiFactorGenerator.assertion(with: credential)))
        }
    }

    private func tell(_ result: MultiFactorEnrollmentResult) {
        print("added")
        guard !result.recoveryCodes.isEmpty else { return }
        print("keep these; each signs in once without a factor:")
        for code in result.recoveryCodes { print("  recovery code: \(code)") }
    }

    func list(_ user: User) {
        for factor in user.multiFactor.enrolledFactors { print("\(factor.uid)  \(Self.describe(factor))") }
        print("\(user.multiFactor.recoveryCodeCount) recovery codes are left")
    }

    private static func describe(_ factor: any MultiFactorInfo) -> String {
        let name = factor.displayName.map { " (\($0))" } ?? ""
        return switch factor {
        case let phone as PhoneMultiFactorInfo: "SMS to \(phone.phoneNumber)\(name)"
        default: "authenticator app\(name)"
        }
    }
}

import Base
import PosternAuth

// Six more pieces of application code as FirebaseAuth's documentation teaches to write them, about second factors.
// FirebaseSnippets.swift says how to read them.

private func show(_ text: String) {}

private func snippet43(
    _ auth: Auth, email: String, password: String, choose: ([any MultiFactorInfo]) -> Int,
    readCode: () async -> String
) async throws {
    do {
        try await auth.signIn(withEmail: email, password: password)
    } catch let error as AuthError where error.code == .secondFactorRequired {
        // FirebaseAuth: error.userInfo[AuthErrorUserInfoMultiFactorResolverKey] as! MultiFactorResolver
        guard let resolver = error.multiFactorResolver else { throw error }
        for info in resolver.hints { show(info.displayName ?? "") }
        let hint = resolver.hints[choose(resolver.hints)] as! PhoneMultiFactorInfo
        let verificationID = try await PhoneAuthProvider.provider(auth: auth).verifyPhoneNumber(
            with: hint, uiDelegate: nil, multiFactorSession: resolver.session)
        let credential = PhoneAuthProvider.provider(auth: auth).credential(
            withVerificationID: verificationID, verificationCode: await readCode())
        let assertion = PhoneMultiFactorGenerator.assertion(with: credential)
        let result = try await resolver.resolveSignIn(with: assertion)
        show(result.user.uid)
    }
}

private func snippet44(_ resolver: MultiFactorResolver, selectedIndex: Int, oneTimePassword: String) async throws {
    let multiFactorInfo = resolver.hints[selectedIndex]
    if multiFactorInfo.factorID == TOTPMultiFactorID {
        let assertion = TOTPMultiFactorGenerator.assertionForSignIn(
            withEnrollmentID: multiFactorInfo.uid, oneTimePassword: oneTimePassword)
        try await resolver.resolveSignIn(with: assertion)
    } else if multiFactorInfo.factorID == PhoneMultiFactorID, let phone = multiFactorInfo as? PhoneMultiFactorInfo {
        show(phone.phoneNumber)
    }
}

private func snippet45(
    _ auth: Auth, user: PosternAuth.User, phoneNumber: String, readCode: () async -> String
) async throws {
    let session = try await user.multiFactor.session()
    let verificationID = try await PhoneAuthProvider.provider(auth: auth).verifyPhoneNumber(
        phoneNumber, uiDelegate: nil, multiFactorSession: session)
    let credential = PhoneAuthProvider.provider(auth: auth).credential(
        withVerificationID: verificationID, verificationCode: await readCode())
    let assertion = PhoneMultiFactorGenerator.assertion(with: credential)
    try await user.multiFactor.enroll(with: assertion, displayName: "My phone")
}

private func snippet46(_ user: PosternAuth.User, readCode: () async -> String) async throws {
    let session = try await user.multiFactor.session()
    let secret = try await TOTPMultiFactorGenerator.generateSecret(with: session)
    show(secret.sharedSecretKey())
    // FirebaseAuth: secret.openInOTPApp(withQRCodeURL: url)
    show(secret.generateQRCodeURL(withAccountName: user.email ?? "default account", issuer: "Your App"))
    let assertion = TOTPMultiFactorGenerator.assertionForEnrollment(
        with: secret, oneTimePassword: await readCode())
    try await user.multiFactor.enroll(with: assertion, displayName: "TOTP")
}

private func snippet47(_ user: PosternAuth.User) async throws {
    for info in user.multiFactor.enrolledFactors { show("\(info.enrollmentDate.seconds) \(info.uid)") }
    if let info = user.multiFactor.enrolledFactors.first {
        try await user.multiFactor.unenroll(with: info)
    }
}

private func snippet48(_ user: PosternAuth.User, factorUID: String) async throws {
    do {
        try await user.multiFactor.unenroll(withFactorUID: factorUID)
    } catch AuthErrorCode.userTokenExpired, AuthErrorCode.requiresRecentLogin {
        show("Sign in again.")
    }
}

import Base
import JSON
import PosternAuth

// 42 pieces of application code as FirebaseAuth's documentation teaches to write them. That this file compiles is the
// test. Where this library asks for something else, a comment above the piece shows FirebaseAuth's code. Such a
// comment begins with FirebaseAuth and a colon; docs/client.md lists each.

private func show(_ text: String) {}
private func send(_ token: String) {}

@MainActor private final class ViewModel {
    let auth: Auth
    var user: PosternAuth.User?
    var handle: AuthStateDidChangeListenerHandle?
    var tokenHandle: IDTokenDidChangeListenerHandle?
    var message = ""

    // FirebaseAuth: Auth.auth()
    init(configuration: Auth.Configuration) throws { auth = try Auth(configuration: configuration) }

    func snippet01() {
        handle = auth.addStateDidChangeListener { auth, user in
            self.user = user
        }
    }

    func snippet02() {
        if let handle { auth.removeStateDidChangeListener(handle) }
    }

    func snippet03() {
        tokenHandle = auth.addIDTokenDidChangeListener { [weak self] _, user in
            self?.user = user
        }
    }

    func snippet04() {
        if let tokenHandle { auth.removeIDTokenDidChangeListener(tokenHandle) }
    }

    func snippet05(email: String, password: String) async {
        do {
            let result = try await auth.createUser(withEmail: email, password: password)
            user = result.user
        } catch {
            message = "\(error)"
        }
    }

    func snippet06(email: String, password: String) async {
        do {
            user = try await auth.signIn(withEmail: email, password: password).user
        } catch AuthErrorCode.wrongPassword, AuthErrorCode.invalidCredential {
            message = "Wrong email or password."
        } catch AuthErrorCode.userDisabled {
            message = "This account is disabled."
        } catch is CancellationError {
            return
        } catch {
            message = "Try again."
        }
    }

    // FirebaseAuth: (error as NSError).code
    func snippet07(email: String, password: String) async throws {
        do {
            try await auth.signIn(withEmail: email, password: password)
        } catch let error as AuthError {
            switch error.code {
            case .networkError: message = "No connection."
            case .tooManyRequests: message = "Wait a moment."
            default: message = error.localizedDescription
            }
            show("\(error.errorCode)")
        }
    }

    func snippet08() {
        Task {
            for await user in auth.authStateChanges { self.user = user }
        }
    }
}

private func snippet09(_ auth: Auth) {
    if let user = auth.currentUser {
        show(user.uid)
        show(user.email ?? "")
        show(user.displayName ?? "")
        show(user.photoURL ?? "")
        show(user.phoneNumber ?? "")
    }
}

private func snippet10(_ auth: Auth) {
    for profile in auth.currentUser?.providerData ?? [] {
        show(profile.providerID)
        show(profile.uid)
        show(profile.displayName ?? profile.email ?? "")
    }
}

private func snippet11(_ user: PosternAuth.User) async throws {
    var changeRequest = user.createProfileChangeRequest()
    changeRequest.displayName = "Ada"
    // FirebaseAuth: URL(string:)
    changeRequest.photoURL = "https://example.com/ada.jpg"
    try await changeRequest.commitChanges()
}

private func snippet12(_ auth: Auth) async throws {
    try await auth.currentUser?.updateEmail(to: "ada@example.com")
}

private func snippet13(_ auth: Auth) async throws {
    try await auth.currentUser?.sendEmailVerification(beforeUpdatingEmail: "ada@example.com")
}

private func snippet14(_ auth: Auth) async throws {
    try await auth.currentUser?.sendEmailVerification()
}

private func snippet15(_ auth: Auth) async throws {
    try await auth.currentUser?.updatePassword(to: "correct horse")
}

private func snippet16(_ auth: Auth) async throws {
    try await auth.sendPasswordReset(withEmail: "ada@example.com")
}

private func snippet17(_ auth: Auth) async throws {
    auth.languageCode = "fr"
    // FirebaseAuth: auth.useAppLanguage()
    auth.languageCode = nil
}

private func snippet18(_ auth: Auth) async throws {
    try await auth.currentUser?.delete()
}

private func snippet19(_ auth: Auth, email: String, password: String) async throws {
    let credential = EmailAuthProvider.credential(withEmail: email, password: password)
    do {
        try await auth.currentUser?.delete()
    } catch AuthErrorCode.requiresRecentLogin {
        try await auth.currentUser?.reauthenticate(with: credential)
        try await auth.currentUser?.delete()
    }
}

private func snippet20(_ auth: Auth) async throws {
    // FirebaseAuth: try auth.signOut()
    try await auth.signOut()
}

private func snippet21(_ auth: Auth) async throws {
    let token = try await auth.currentUser?.getIDToken()
    send(token ?? "")
}

private func snippet22(_ user: PosternAuth.User) async throws {
    let token = try await user.getIDToken(forcingRefresh: true)
    send(token)
}

private func snippet23(_ user: PosternAuth.User) async throws {
    let result = try await user.getIDTokenResult(forcingRefresh: true)
    // FirebaseAuth: result.claims["admin"] as? Bool
    if result[claim: "admin"]?.bool == true { show("admin") }
    show(result.signInProvider)
}

private func snippet24(_ auth: Auth, idToken: String, accessToken: String) async throws {
    let credential = GoogleAuthProvider.credential(withIDToken: idToken, accessToken: accessToken)
    let result = try await auth.signIn(with: credential)
    show(result.additionalUserInfo.isNewUser ? "welcome" : "welcome back")
}

private func snippet25(_ auth: Auth, accessToken: String) async throws {
    try await auth.signIn(with: FacebookAuthProvider.credential(withAccessToken: accessToken))
}

private func snippet26(_ auth: Auth, token: String) async throws {
    try await auth.signIn(with: GitHubAuthProvider.credential(withToken: token))
}

private func snippet27(_ auth: Auth, idTokenString: String, nonce: String) async throws {
    // FirebaseAuth: fullName: appleIDCredential.fullName
    let credential = OAuthProvider.appleCredential(withIDToken: idTokenString, rawNonce: nonce)
    try await auth.signIn(with: credential)
}

private func snippet28(_ auth: Auth, idToken: String, nonce: String) async throws {
    let credential = OAuthProvider.credential(providerID: .apple, idToken: idToken, rawNonce: nonce)
    try await auth.currentUser?.reauthenticate(with: credential)
}

private func snippet29(_ auth: Auth, openBrowser: (String) async throws -> String) async throws {
    var provider = OAuthProvider(providerID: "microsoft.com")
    provider.customParameters = ["prompt": "consent", "login_hint": "ada@example.com"]
    provider.scopes = ["mail.read", "calendars.read"]
    // FirebaseAuth: provider.getCredentialWith(nil)
    let request = try await provider.authorizationRequest(continueURI: "com.example.shop:/signed-in", auth: auth)
    let credential = try request.credential(fromRedirect: try await openBrowser(request.url))
    try await auth.signIn(with: credential)
}

private func snippet30(_ auth: Auth) async throws {
    let result = try await auth.signInAnonymously()
    show(result.user.isAnonymous ? "a guest" : "")
}

private func snippet31(_ auth: Auth, email: String, password: String) async throws {
    let credential = EmailAuthProvider.credential(withEmail: email, password: password)
    do {
        try await auth.currentUser?.link(with: credential)
    } catch AuthErrorCode.credentialAlreadyInUse, AuthErrorCode.emailAlreadyInUse {
        try await auth.signIn(with: credential)
    }
}

private func snippet32(_ auth: Auth) async throws {
    try await auth.currentUser?.unlink(fromProvider: GoogleAuthProviderID)
    show(EmailAuthProviderID + FacebookAuthProvider.id + GitHubAuthProvider.id + EmailAuthProvider.id)
}

private func snippet33(_ auth: Auth, customToken: String) async throws {
    try await auth.signIn(withCustomToken: customToken)
}

private func snippet34(_ auth: Auth, email: String) async throws {
    // FirebaseAuth: actionCodeSettings.handleCodeInApp = true
    let actionCodeSettings = ActionCodeSettings(url: "https://www.example.com")
    try await auth.sendSignInLink(toEmail: email, actionCodeSettings: actionCodeSettings)
}

private func snippet35(_ auth: Auth, email: String, link: String) async throws {
    if auth.isSignIn(withEmailLink: link) {
        try await auth.signIn(withEmail: email, link: link)
    }
}

private func snippet36(_ auth: Auth, code: String, password: String) async throws {
    let email = try await auth.verifyPasswordResetCode(code)
    show(email)
    try await auth.confirmPasswordReset(withCode: code, newPassword: password)
}

private func snippet37(_ auth: Auth, code: String) async throws {
    let info = try await auth.checkActionCode(code)
    if info.operation == .verifyEmail { try await auth.applyActionCode(code) }
}

private func snippet38(_ auth: Auth, email: String, password: String) async throws {
    auth.tenantID = "acme"
    let user = try await auth.signIn(withEmail: email, password: password).user
    show(user.tenantID ?? "")
}

private func snippet39(_ auth: Auth, other: Auth) async throws {
    if let user = auth.currentUser { try await other.updateCurrentUser(user) }
}

private func snippet40(_ auth: Auth) async throws {
    try await auth.currentUser?.reload()
    if auth.currentUser?.isEmailVerified == true, let date = auth.currentUser?.metadata.creationDate {
        // FirebaseAuth: Date
        show("\(date.seconds)")
    }
}

private func snippet41(_ auth: Auth, phoneNumber: String, readCode: () async -> String) async throws {
    // FirebaseAuth: PhoneAuthProvider.provider()
    let provider = PhoneAuthProvider.provider(auth: auth)
    let verificationID = try await provider.verifyPhoneNumber(phoneNumber, uiDelegate: nil)
    let credential = provider.credential(
        withVerificationID: verificationID, verificationCode: await readCode())
    let result = try await auth.signIn(with: credential)
    show(result.user.phoneNumber ?? "")
}

private func snippet42(_ auth: Auth, credential: PhoneAuthCredential) async throws {
    try await auth.currentUser?.updatePhoneNumber(credential)
}

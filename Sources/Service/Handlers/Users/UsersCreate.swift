import Base
import Identity
import Messages
import Rules

/// postern.v1.Users/Create
enum UsersCreate: SlowMethod {
    static func handle(_ request: UsersCreateRequest, _ call: Call) async throws -> UsersCreateResponse {
        let limits = call.limits
        let uid = request.uid.isEmpty ? call.project.resources.random.alphanumeric(28) : request.uid
        try Values.checkUID(uid, limits: limits)
        try Values.checkDisplayName(request.displayName, limits: limits)
        try Values.checkPhotoURL(request.photoURL, limits: limits)
        try Values.checkPhoneNumber(request.phoneNumber)
        let email =
            try request.email.isEmpty ? nil : Values.email(request.email, form: call.settings.emailForm, limits: limits)
        let now = call.now
        var account = Account(user: User(tenantID: call.tenantID, uid: uid))
        account.user.email = email?.address ?? .empty
        account.user.emailVerified = request.emailVerified && email != nil
        account.noteEmailSetByAdmin(over: nil)
        account.user.displayName = request.displayName
        account.user.photoURL = request.photoURL
        account.user.phoneNumber = request.phoneNumber
        account.user.disabled = request.disabled
        account.user.createdAtMicros = now.microseconds
        account.user.tokensValidAfterMicros = now.microseconds
        if !request.password.isEmpty {
            try Values.checkNewPassword(request.password, limits: limits)
            account.passwordHash = try await call.project.passwords.hash(request.password, call.passwordTurn())
            account.passwordUpdatedAt = now
        }
        account.deriveProviders()
        let user = try await call.userSession(uid).create(
            account, isUIDChosen: !request.uid.isEmpty, origin: call.origin, validateOnly: request.validateOnly)
        return UsersCreateResponse(user: user)
    }
}

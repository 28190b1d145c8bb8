import Base
import Messages
import Rules
import Testing

/// Every two looks at a session, and what is told about the second.
@Suite struct AuthStateTests {
    private static let settings = TenantSettings(
        StoredTenant(tenant: TenantSettings.defaults(tenantID: "acme", now: .zero)))
    private static let now = Timestamp(seconds: 1_000)

    /// The differences that the second look may show.
    struct Difference: CaseIterable, CustomTestStringConvertible {
        var isDeleted = false
        var isDisabled = false
        var hasNoSession = false
        var end = SessionEnd.unspecified
        var isRefreshed = false
        var isRenamed = false

        static let allCases: [Difference] = {
            var all: [Difference] = []
            for bits in 0..<32 {
                for end in [SessionEnd.unspecified, .reuse, .passwordChanged, .signedOut, .admin] {
                    all.append(
                        Difference(
                            isDeleted: bits & 1 != 0, isDisabled: bits & 2 != 0, hasNoSession: bits & 4 != 0, end: end,
                            isRefreshed: bits & 8 != 0, isRenamed: bits & 16 != 0))
                }
            }
            return all
        }()

        var testDescription: String {
            "deleted \(isDeleted), disabled \(isDisabled), no session \(hasNoSession), \(end), "
                + "refreshed \(isRefreshed), renamed \(isRenamed)"
        }

        var expected: AuthStateStep {
            if isDeleted { return .deleted }
            if isDisabled { return .disabled }
            if hasNoSession { return .signedOut(.signedOut) }
            switch end {
            case .reuse: return .signedOut(.revokedByReuse)
            case .passwordChanged: return .signedOut(.passwordChanged)
            case .signedOut: return .signedOut(.signedOut)
            case .admin: return .signedOut(.admin)
            case .unspecified: break
            }
            if isRefreshed { return .tokenRefreshed(.reauthenticated) }
            return isRenamed ? .profileChanged : .none
        }
    }

    @Test(arguments: Difference.allCases)
    func theMostFinalDifferenceIsTold(_ difference: Difference) {
        let user = User(tenantID: "acme", uid: "ada")
        let session = StoredSession(
            tenantID: "acme", uid: "ada", createdAtMicros: Self.now.microseconds, counter: 1,
            lastUsedAtMicros: Self.now.microseconds)
        var changedUser = user
        if difference.isRenamed { changedUser.displayName = "Ada" }
        changedUser.disabled = difference.isDisabled
        var changedSession = session
        changedSession.end = difference.end
        if difference.isRefreshed {
            changedSession.counter += 1
            changedSession.refreshCause = .reauthenticated
        }
        let step = AuthStateStep.between(
            AuthState(user: user, session: session).mark,
            AuthState(
                user: difference.isDeleted ? nil : changedUser,
                session: difference.hasNoSession ? nil : changedSession),
            settings: Self.settings, now: Self.now)
        #expect(step == difference.expected)
    }

    @Test func aSessionNobodyUsedEndsByItself() {
        let session = StoredSession(tenantID: "acme", uid: "ada", createdAtMicros: 0, counter: 1)
        let state = AuthState(user: User(tenantID: "acme", uid: "ada"), session: session)
        let idleEnd = Timestamp.zero + Self.settings.sessionIdle
        #expect(AuthStateStep.between(state.mark, state, settings: Self.settings, now: idleEnd) == .none)
        let after = AuthStateStep.between(state.mark, state, settings: Self.settings, now: idleEnd + .seconds(1))
        #expect(after == .signedOut(.expired) && after.isLast)
    }
}

import Base
import Crypto
import JSON
import Messages
import Outbound
import Rules

/// Asks a tenant's own endpoints before an end user is created or signs in.
///
/// The endpoints are asked before the user's turn and before any transaction, so that a slow endpoint delays only the
/// user who signs in. The `HTTPClient` limits how many requests of a tenant run at once, and which addresses can be
/// reached.
///
/// A hook fails when its endpoint is not reached, is too slow, or answers with another status than one of success.
/// `allow_on_failure` is about these failures. Two things refuse the sign-in, whatever the hook allows, because end
/// users could bring them about:
///
/// - The endpoint answered with a status of success, and the body cannot be used. It may be a refusal that repeats what
///   the end user typed, and is no JSON because of this.
/// - This server cannot ask, because of many sign-ins at once for example. This is no failure of the hook.
///
/// Any thread.
struct BlockingHooks: Sendable {
    /// The description of a sign-in that a hook gets.
    struct Event: Sendable {
        var isNewUser: Bool
        /// False for a password reset that makes an account: `before_sign_in` is not asked then.
        var beginsSession = true
        /// The account as the sign-in leaves it, if the hooks change nothing.
        var account: Account
        var signInProvider: Text
        var deviceName: Text
        var endUserIP: Text
        var requestID: Text

        fileprivate func concerns(_ point: HookPoint) -> Bool {
            switch point {
            case .beforeCreate: isNewUser
            case .beforeSignIn: beginsSession
            }
        }
    }

    let resources: Resources
    let configs: HookConfigs
    let http: HTTPClient
    /// The counts of failed hooks, and their log lines.
    let failures: HookFailures

    init(_ configs: HookConfigs, _ http: HTTPClient) {
        (self.resources, self.configs, self.http) = (configs.resources, configs, http)
        self.failures = HookFailures(configs.resources.log)
    }

    /// The hooks' answer to the sign-in. `source`: whom it is for, among those who share the tenant's turns.
    /// BLOCKED_BY_HOOK, HOOK_FAILED. If a hook could not be asked: SERVER_OVERLOADED, DEADLINE_EXCEEDED, the pool's
    /// other errors.
    func ask(
        _ event: Event, tenantID: Text, source: Text = .empty, deadline: Instant
    ) async throws -> HookAnswer {
        var (event, answer) = (event, HookAnswer())
        // No session begins for a user whom the first hook disables.
        for point in HookPoint.allCases where event.concerns(point) && !answer.isDisabled {
            guard let configured = try configs.hook(point, tenantID: tenantID) else { continue }
            do {
                let answerOfHook = try await ask(configured, event, source: source, deadline: deadline)
                if let message = answerOfHook.refusal {
                    throw Failure(
                        .blockedByHook, "The tenant's \(point.rawValue) hook refused this.",
                        metadata: [Failure.Entry("hook", point.rawValue), Failure.Entry("message", message.string)])
                }
                answer = answer.followed(by: answerOfHook)
                answerOfHook.apply(to: &event.account)
            } catch let failed as HookTrouble {
                let isRefused = failed.mayBeRefusal || !configured.hook.allowOnFailure
                failures.note(failed, of: point, tenantID: tenantID, isRefused: isRefused, now: .now)
                guard !isRefused else {
                    throw Failure(
                        .hookFailed, "The tenant's \(point.rawValue) hook gave no answer that can be used.",
                        metadata: [Failure.Entry("hook", point.rawValue)])
                }
            }
        }
        return answer
    }

    /// Throws `HookTrouble` if the hook failed.
    private func ask(
        _ configured: ConfiguredHook, _ event: Event, source: Text, deadline: Instant
    ) async throws -> HookAnswer {
        let point = configured.point
        let request = try request(configured, event)
        do {
            let answer = try await http.send(
                request, tenant: configured.tenantID, source: source, deadline: deadline)
            if answer.bodyError == .timedOut, Self.isAlmostOver(deadline) { throw OutboundError.timedOut }
            return try read(answer)
        } catch OutboundError.overloaded {
            throw Failure(
                .serverOverloaded, "Too much of this tenant is on its way to other servers; try again.",
                metadata: [Failure.Entry("hook", point.rawValue)], retryAfter: .seconds(1))
        } catch OutboundError.timedOut where Self.isAlmostOver(deadline) {
            throw Failure(
                .deadlineExceeded, "The deadline passed before the tenant's \(point.rawValue) hook had its time.",
                metadata: [Failure.Entry("hook", point.rawValue)])
        } catch let error as OutboundError {
            throw HookTrouble(cause: HookFailureCause(error), reason: error.explanation)
        }
    }

    /// Throws `HookTrouble` for an answer that cannot be used.
    private func read(_ answer: HTTPAnswer) throws(HookTrouble) -> HookAnswer {
        guard answer.isSuccess else { throw HookTrouble(cause: .status, reason: "it answered \(answer.status)") }
        if let error = answer.bodyError {
            throw HookTrouble(cause: .answer, reason: "it answered \(answer.status), but \(error.explanation)")
        }
        do throws(HookAnswer.Fault) {
            return try HookAnswer(answer.body, limits: resources.limits)
        } catch {
            throw HookTrouble(cause: .answer, reason: "its answer cannot be used: \(error.reason)")
        }
    }

    /// Whether the call's deadline ended a request. libcurl counts in milliseconds, and may be early by one.
    private static func isAlmostOver(_ deadline: Instant) -> Bool {
        Instant.now.advanced(by: .milliseconds(10)) >= deadline
    }

    private func request(_ configured: ConfiguredHook, _ event: Event) throws -> HTTPRequest {
        let hook = configured.hook
        guard let url = HTTPURL(hook.webhook?.url ?? .empty), !configured.secret.isEmpty else {
            throw HookTrouble(cause: .unreachable, reason: "it has no URL or no secret")
        }
        let now = resources.clock.now()
        var request = Webhook.request(
            Self.body(configured.point, event, tenantID: configured.tenantID, at: now), to: url,
            secret: configured.secret, allowsPrivateAddresses: configured.allowsPrivateAddresses, at: now)
        request.timeout = .milliseconds(hook.timeoutMillis == 0 ? 5_000 : Int64(hook.timeoutMillis))
        request.bodyByteCountMax = HookAnswer.byteCountMax
        request.keepsStatus = true
        return request
    }

    private static func body(_ point: HookPoint, _ event: Event, tenantID: Text, at now: Timestamp) -> [UInt8] {
        let user = event.account.user
        let claims = user.customClaimsJSON.isEmpty ? nil : try? JSONValue(parsing: user.customClaimsJSON)
        let json: JSONValue = [
            "hook": .string(Text(point.rawValue)), "tenant_id": .string(tenantID),
            "request_id": .string(event.requestID), "time_micros": .integer(now.microseconds),
            "is_new_user": .bool(event.isNewUser), "sign_in_provider": .string(event.signInProvider),
            "device_name": .string(event.deviceName), "end_user_ip": .string(event.endUserIP),
            "user": [
                "uid": .string(user.uid), "email": .string(user.email), "email_verified": .bool(user.emailVerified),
                "phone_number": .string(user.phoneNumber), "display_name": .string(user.displayName),
                "photo_url": .string(user.photoURL), "custom_claims": claims ?? .object([]),
                "providers": .array(user.providers.map(provider)),
            ],
        ]
        return json.serialized()
    }

    private static func provider(_ provider: ProviderInfo) -> JSONValue {
        [
            "provider_id": .string(provider.providerID), "raw_id": .string(provider.rawID),
            "email": .string(provider.email), "display_name": .string(provider.displayName),
            "photo_url": .string(provider.photoURL),
        ]
    }
}

import Base
import Messages
import Testing

/// Which fields an update may change is what proto/ marks (updatable).
@Suite struct UpdateMaskTests {
    private func refusal(_ paths: [Text]) -> Failure? {
        do throws(Failure) {
            _ = try UpdateMask<Tenant>(paths)
            return nil
        } catch {
            return error
        }
    }

    @Test func aMaskKeepsTheOrderOfTheRequestAndTheNamesOfTheProto() throws {
        let names: [Text] = ["suspended", "quotas.stored_bytes", "client.permissions.disabled_user_signup", "guidance"]
        let mask = try UpdateMask<Tenant>(names)
        #expect(
            mask.paths == [.suspended, .quotasStoredBytes, .clientPermissionsDisabledUserSignup, .guidance])
        #expect(mask.names == "suspended,quotas.stored_bytes,client.permissions.disabled_user_signup,guidance")
        #expect(mask.contains(.guidance) && !mask.contains(.quotas))
        #expect(mask.containsAny(of: .quotas, .suspended) && !mask.containsAny(of: .quotas, .displayName))
    }

    @Test(arguments: [
        [], [""], ["*"], ["client"], ["client.permissions"], ["quotas."], [".quotas"], ["quotas.storedBytes"],
        ["displayName"], ["display_name "], ["tenant_id"], ["synthetic"], ["revision"], ["created_at_micros"],
        ["continue_url_rule"], ["display_name", "display_name"], ["display_name", "unknown"],
    ])
    func aMaskWithoutPathsOrWithAnyOtherIsRefused(paths: [String]) {
        let refusal = refusal(paths.map { Text($0) })
        #expect(refusal?.reason == "INVALID_UPDATE_MASK" && refusal?.violations.first?.field == "update_mask")
    }

    @Test func noMaskIsRefusedAndNoNamesAreNot() throws {
        #expect(throws: Failure.self) { try UpdateMask<UsersUpdateRequest>(nil) }
        #expect(try UpdateMask<UsersUpdateRequest>(naming: []).paths.isEmpty)
    }

    @Test func aMillionPathsAreRefusedAtTheFirstThatIsTwice() {
        #expect(refusal(Array(repeating: "disable_auth", count: 1_000_000))?.reason == "INVALID_UPDATE_MASK")
    }

    /// Empties a message that has everything field by field, then fills an empty one: each path changes something, and
    /// all together change everything that is marked.
    private func copies<Target: Message & UpdatableMessage>(_ full: Target) {
        var emptied = full
        var filled = Target()
        for path in Target.Path.allCases {
            let (emptiedBefore, filledBefore) = (emptied.encoded(), filled.encoded())
            emptied.copy(path, from: Target())
            filled.copy(path, from: full)
            // A field below another one has changed already when that one was emptied or filled as a whole.
            let isBelow = path.name.bytes.contains(UInt8(ascii: "."))
            #expect(isBelow || emptied.encoded() != emptiedBefore, "\(path.name)")
            #expect(isBelow || filled.encoded() != filledBefore, "\(path.name)")
        }
        #expect(Set(Target.Path.allCases.map(\.name)).count == Target.Path.allCases.count)
    }

    @Test func eachPathCopiesItsField() {
        copies(
            EmailConfig(
                delivery: .smtp, smtp: SmtpConfig(host: "h"), webhook: WebhookConfig(url: "u"), senderName: "n",
                senderAddress: "a", replyTo: "r", actionURL: "u", templates: [EmailTemplate(subject: "s")],
                allowPrivateAddresses: true))
        copies(
            Provider(
                enabled: true, displayName: "d", clientID: "c", clientSecret: Secret("s"), additionalAudiences: ["a"],
                issuer: "i", endpoints: ProviderEndpoints(discovery: "d"), allowHTTPLoopback: true,
                allowPrivateAddresses: true, acceptUnboundAccessTokens: true, trust: ProviderTrust(level: .never),
                apple: AppleKey(teamID: "t"), acceptUnknownNonce: true))
    }

    /// A mask may name the quotas of a credential as a whole, so each of them has to be marked.
    @Test func allQuotasOfACredentialMayBeChanged() {
        let full = CallerQuotas(mutationsPerSecond: 1, writtenBytesPerHour: 2, smsPerHour: 3)
        copies(full)
        var filled = CallerQuotas()
        for path in CallerQuotas.Path.allCases { filled.copy(path, from: full) }
        #expect(filled == full)
    }

    @Test func aPathLeadsIntoAMessageOfTheRequest() throws {
        func inner(_ names: [Text]) throws -> [CallerQuotas.Path] {
            try UpdateMask<ProjectUpdateApiKeyRequest>(names).innerPaths(of: CallerQuotas.self, at: .quotas)
        }
        #expect(try inner(["quotas.sms_per_hour", "display_name"]) == [.smsPerHour])
        #expect(try inner(["quotas.written_bytes_per_hour", "quotas"]) == CallerQuotas.Path.allCases)
        #expect(try inner(["display_name"]).isEmpty)
        for wrong in ["quotas.", "quotas.smsPerHour", "quotas.sms_per_hour.x", "quotas.stored_bytes"] as [Text] {
            #expect(throws: Failure.self) { try inner([wrong]) }
        }
    }

    @Test func aFieldBelowAnotherLeavesItsNeighboursAlone() {
        var tenant = Tenant(quotas: TenantQuotas(storedBytes: 1, mutationsPerSecond: 2))
        tenant.copy(.quotasStoredBytes, from: Tenant(quotas: TenantQuotas(storedBytes: 5, mutationsPerSecond: 6)))
        #expect(tenant.quotas == TenantQuotas(storedBytes: 5, mutationsPerSecond: 2))
        tenant.copy(.quotasMutationsPerSecond, from: Tenant())
        #expect(tenant.quotas == TenantQuotas(storedBytes: 5))
        var empty = Tenant()
        let wanted = Tenant(client: ClientConfig(permissions: ClientPermissions(disabledUserSignup: true)))
        empty.copy(.clientPermissionsDisabledUserSignup, from: wanted)
        #expect(empty.client == wanted.client)
    }
}

import Base
import Messages
import PosternAdmin
import PosternClient
import TestSupport
import Testing

/// Every method of administrators, called once by its convenience function, against a real server that counts calls.
@Suite(.timeLimit(.minutes(2))) struct AdminMethodsTests {
    @Test func `No method of administrators is missing, and every change carries a key`() async throws {
        try await AdminScene.run { scene in
            let recorder = MethodRecorder(scene.server)
            try await Self.callProject(scene.project, recorder)
            try await Self.callCertificateMappings(scene.project, recorder)
            try await Self.callServiceAccounts(scene.project, recorder)
            let acme = scene.project.tenant("acme")
            try await Self.callUsers(acme, recorder)
            try await Self.callSignIn(acme, scene, recorder)
            try await UserMethods.call(acme, recorder)
            try await AuditMethods.call(acme, recorder)
            try await KeyMethods.call(scene.project, recorder)
            try await Self.callSecondFactors(acme, recorder)
            try await Self.callProviders(acme, recorder)
            try await MailMethods.call(acme, scene, recorder)
            try await Self.callDenials(acme, scene, recorder)
            try await ManyTenantsMethods.call(scene.project, recorder)
            try await recorder.expect("Tenants/Delete") { try await scene.project.deleteTenant("acme") }
            await expectRefusal("TENANT_NOT_FOUND") { () throws(Failure) in _ = try await acme.settings() }
            let stubOnly = Set(PublishedMethod.all.filter { !$0.stubOnly.isEmpty }.map(\.fullName))
            let missing = recorder.ofAdministrators.subtracting(recorder.called).subtracting(stubOnly)
            #expect(missing.isEmpty, "call a function of PosternAdmin here, or say stub_only in the proto")
            let called = recorder.called.intersection(stubOnly)
            #expect(called.isEmpty, "PosternAdmin has a function: take stub_only out of the proto")
        }
    }

    private static func callProject(_ project: ProjectAdmin, _ recorder: MethodRecorder) async throws {
        let made = try await recorder.expect("Tenants/Create") {
            try await project.createTenant("acme", settings: TenantSettingsChange { $0.displayName = "Acme" })
        }
        #expect(made.displayName == "Acme" && made.allowPasswordSignup)
        let tenantsGet = try await recorder.expect("Tenants/Get") { try await project.getTenant("acme") }
        #expect(tenantsGet == made)
        let ids = try await recorder.expect("Tenants/List") { try await project.listTenants().all().map(\.tenantID) }
        #expect(ids == ["", "acme"])
        let changed = try await recorder.expect("Tenants/Update") {
            try await project.updateTenant("acme", TenantSettingsChange { $0.enableEmailLinkSignin = true })
        }
        #expect(changed.enableEmailLinkSignin && changed.displayName == "Acme")

        let (key, secret) = try await recorder.expect("Project/CreateApiKey") {
            try await project.createApiKey(role: .app, displayName: "shop")
        }
        #expect(secret.byteCount > 20)
        let keys = try await recorder.expect("Project/ListApiKeys") { try await project.listApiKeys().all() }
        #expect(keys.contains(key))
        let changedKey = try await recorder.expect("Project/UpdateApiKey") {
            try await project.setApiKeyQuotas(CallerQuotas(mutationsPerSecond: 7), of: key.apiKeyID)
        }
        #expect(changedKey.quotas?.mutationsPerSecond == 7 && changedKey.displayName == "shop")
        let revoked = try await recorder.expect("Project/RevokeApiKey") {
            try await project.revokeApiKey(key.apiKeyID)
        }
        #expect(revoked.revokedAtMicros > 0)

        let rotated = try await recorder.expect("Project/RotateSigningKey") {
            try await project.rotateSigningKey(publishAhead: .milliseconds(59_001))
        }
        #expect(rotated.signsFromMicros - rotated.createdAtMicros == 60_000_000)
        let signing = try await recorder.expect("Project/ListSigningKeys") { try await project.listSigningKeys() }
        #expect(signing.contains { $0.keyID == rotated.keyID })
        let (leaked, successor) = try await recorder.expect("Project/RevokeSigningKey") {
            try await project.revokeSigningKey(rotated.keyID)
        }
        #expect(leaked.state == .revoked && successor?.state == .published)
        try await callServer(project, recorder)
    }

    private static func callServer(_ project: ProjectAdmin, _ recorder: MethodRecorder) async throws {
        let projectServerInfo = try await recorder.expect("Project/ServerInfo") { try await project.serverInfo() }
        #expect(projectServerInfo.projectID == "test")
        let projectStats = try await recorder.expect("Project/Stats") { try await project.stats() }
        #expect(projectStats.isEmpty == false)
        let cluster = try await recorder.expect("Project/GetClusterStatus") { try await project.clusterStatus() }
        #expect(!cluster.inCluster)
        let digest = try await recorder.expect("Project/DigestStore") { try await project.digestStore() }
        #expect(digest.tables.contains { $0.table == "tenants" && $0.sha256.count == 32 })
        try await recorder.expect("Project/MakeSnapshot") {
            await expectRefusal("NOT_IN_CLUSTER") { () throws(Failure) in _ = try await project.makeSnapshot() }
        }
        var backup: [UInt8] = []
        let byteCount = try await recorder.expect("Project/Backup") { try await project.writeBackup { backup += $0 } }
        #expect(byteCount == backup.count && backup.starts(with: "PSTNBAK1".utf8))
    }

    private static func callCertificateMappings(_ project: ProjectAdmin, _ recorder: MethodRecorder) async throws {
        let mapping = try await recorder.expect("Project/CreateCertificateMapping") {
            try await project.createCertificateMapping(
                CertificateMapping(
                    name: .uri("spiffe://example.org/mailer"),
                    issuerKeySha256: Text(String(repeating: "0", count: 64)), role: .app,
                    scope: Scope(tenants: .all(true))))
        }
        let mappings = try await recorder.expect("Project/ListCertificateMappings") {
            try await project.listCertificateMappings().all()
        }
        #expect(mappings == [mapping])
        let unmapped = try await recorder.expect("Project/DeleteCertificateMapping") {
            try await project.deleteCertificateMapping(mapping.certificateMappingID)
        }
        #expect(unmapped == mapping)
    }

    private static func callServiceAccounts(_ project: ProjectAdmin, _ recorder: MethodRecorder) async throws {
        let made = try await recorder.expect("Project/CreateServiceAccount") {
            try await project.createServiceAccount("shop-bot", role: .app)
        }
        let got = try await recorder.expect("Project/GetServiceAccount") {
            try await project.getServiceAccount("shop-bot")
        }
        #expect(got == made)
        let all = try await recorder.expect("Project/ListServiceAccounts") {
            try await project.listServiceAccounts().all()
        }
        #expect(all.contains(made))
        let changed = try await recorder.expect("Project/UpdateServiceAccount") {
            try await project.updateServiceAccount("shop-bot", ServiceAccountChange { $0.customTokens = true })
        }
        #expect(changed.customTokens && changed.role == .app)

        let (key, file) = try await recorder.expect("Project/CreateServiceAccountKey") {
            try await project.createServiceAccountKey(of: "shop-bot", algorithm: "ES256", lifetime: .hours(1))
        }
        #expect(file.byteCount > 100)
        #expect(key.expiresAtMicros == key.createdAtMicros + 3_600_000_000)
        let uploaded = try await recorder.expect("Project/UploadServiceAccountKey") {
            try await project.uploadServiceAccountKey(of: "shop-bot", publicKey: publicKey)
        }
        let keys = try await recorder.expect("Project/ListServiceAccountKeys") {
            try await project.listServiceAccountKeys(of: "shop-bot")
        }
        #expect(Set(keys.map(\.keyID)) == [key.keyID, uploaded.keyID])
        let revoked = try await recorder.expect("Project/RevokeServiceAccountKey") {
            try await project.revokeServiceAccountKey(key.keyID, of: "shop-bot")
        }
        #expect(revoked.revokedAtMicros > 0)
        try await recorder.expect("Project/DeleteServiceAccount") {
            try await project.deleteServiceAccount("shop-bot")
        }
    }

    private static func callUsers(_ admin: TenantAdmin, _ recorder: MethodRecorder) async throws {
        let made = try await recorder.expect("Users/Create") {
            try await admin.createUser(uid: "ada", email: "ada@example.com", password: Secret("correct horse"))
        }
        #expect(made.tenantID == "acme")
        let usersGet = try await recorder.expect("Users/Get") { try await admin.getUser("ada") }
        #expect(usersGet == made)
        let found = try await recorder.expect("Users/GetByEmail") { try await admin.getUserByEmail("ADA@example.com") }
        #expect(found == made)
        let usersList = try await recorder.expect("Users/List") { try await admin.listUsers().all() }
        #expect(usersList == [made])
        let changed = try await recorder.expect("Users/Update") {
            try await admin.updateUser("ada", UserChange(displayName: "Ada"))
        }
        #expect(changed.displayName == "Ada")
        let claimed = try await recorder.expect("Users/SetCustomClaims") {
            try await admin.setCustomUserClaims("ada", json: #"{"role":"editor"}"#)
        }
        #expect(claimed.customClaimsJSON == [UInt8](#"{"role":"editor"}"#.utf8))
        let usage = try await recorder.expect("Tenants/GetUsage") { try await admin.usage() }
        #expect(usage.storedRows > 0)
        _ = try await recorder.expect("Users/RevokeTokens") { try await admin.revokeRefreshTokens("ada") }
        let report = try await recorder.expect("Users/Import") {
            try await admin.importUsers([ImportUser(uid: "bob")])
        }
        #expect(report.createdCount == 1 && report.checkpoint == 1)
        try await recorder.expect("Users/Delete") { try await admin.deleteUser("bob") }
    }

    private static func callSignIn(
        _ admin: TenantAdmin, _ scene: AdminScene, _ recorder: MethodRecorder
    ) async throws {
        let google = ProviderInfo(providerID: "google.com", rawID: "g-1")
        let linked = try await recorder.expect("Users/Link") { try await admin.linkProvider(google, to: "ada") }
        #expect(linked.providers.map(\.providerID).contains("google.com"))
        let unlinked = try await recorder.expect("Users/Unlink") {
            try await admin.unlinkProvider("google.com", from: "ada")
        }
        #expect(!unlinked.providers.map(\.providerID).contains("google.com"))
        let token = try await recorder.expect("Users/CreateCustomToken") {
            try await admin.createCustomToken("ada", lifetime: .minutes(5))
        }
        let signedIn = try await AccountsClient(channel: scene.channel).signInWithCustomToken(
            AccountsSignInWithCustomTokenRequest(tenantID: "acme", token: token))
        #expect(signedIn.user?.uid == "ada")
        let sessions = try await recorder.expect("Users/ListSessions") { try await admin.listSessions("ada") }
        try await recorder.expect("Users/RevokeSession") {
            try await admin.revokeSession(#require(sessions.first).sessionID, of: "ada")
        }
        #expect(try await admin.listSessions("ada").isEmpty)
        let link = try await recorder.expect("Users/GenerateOobLink") {
            try await admin.generateOobLink(.passwordReset, email: "ada@example.com")
        }
        #expect(!link.oobLink.isEmpty && !link.oobCode.isEmpty)
    }

    private static func callSecondFactors(_ admin: TenantAdmin, _ recorder: MethodRecorder) async throws {
        _ = try await admin.updateUser("ada", UserChange(emailVerified: true))
        let added = try await recorder.expect("Users/AddSecondFactor") {
            try await admin.addSecondFactor(phoneNumber: "+1 415 555 0123", displayName: "work", to: "ada")
        }
        #expect(added.kind == .phone && added.phoneNumber == "+14155550123" && added.displayName == "work")
        #expect(try await admin.secondFactors(of: "ada") == [added])
        let left = try await recorder.expect("Users/RemoveSecondFactor") {
            try await admin.removeSecondFactor(added.factorID, from: "ada")
        }
        #expect(left.secondFactors.isEmpty)
        try await admin.addSecondFactor(phoneNumber: "+1 415 555 0124", to: "ada")
        #expect(try await admin.removeAllSecondFactors(from: "ada").secondFactors.isEmpty)
        await expectRefusal("MFA_ENROLLMENT_NOT_FOUND") { () throws(Failure) in
            _ = try await admin.removeSecondFactor("none", from: "ada")
        }
        let (settings, endedCount) = try await admin.updateSettingsEndingSessionsWithoutSecondFactor(
            TenantSettingsChange { $0.secondFactorState = .mandatory })
        #expect(settings.secondFactorState == .mandatory && endedCount == 0)
        try await admin.updateSettings(TenantSettingsChange { $0.secondFactorState = .disabled })
    }

    private static func callProviders(_ admin: TenantAdmin, _ recorder: MethodRecorder) async throws {
        let made = try await recorder.expect("Providers/Create") {
            try await admin.createProvider(
                Provider(
                    providerID: "oidc.corp", clientID: "shop", issuer: "https://127.0.0.1:1",
                    allowPrivateAddresses: true))
        }
        let providersGet = try await recorder.expect("Providers/Get") { try await admin.getProvider("oidc.corp") }
        #expect(providersGet == made)
        let providersList = try await recorder.expect("Providers/List") { try await admin.listProviders().all() }
        #expect(providersList == [made])
        let changed = try await recorder.expect("Providers/Update") {
            try await admin.updateProvider("oidc.corp", ProviderChange { $0.displayName = "Corp" })
        }
        #expect(changed.displayName == "Corp" && changed.clientID == "shop")
        let providersTest = try await recorder.expect("Providers/Test") { try await admin.testProvider("oidc.corp") }
        #expect(providersTest.ok == false)
        let explained = try await recorder.expect("Users/ExplainLink") {
            try await admin.explainLink(providerID: "oidc.corp", claims: #"{"sub":"1"}"#)
        }
        #expect(explained.outcome == .create)
        let issuers = try await recorder.expect("Providers/Rebind") {
            try await admin.rebindProvider("oidc.corp", from: "https://former.example")
        }
        #expect(issuers.contains("https://former.example"))
        try await recorder.expect("Providers/Delete") { try await admin.deleteProvider("oidc.corp") }
    }

    private static func callDenials(
        _ admin: TenantAdmin, _ scene: AdminScene, _ recorder: MethodRecorder
    ) async throws {
        _ = try await admin.updateSettings(TenantSettingsChange { $0.disabledUserSignup = true })
        await expectRefusal("ADMIN_RESTRICTED_OPERATION") { () throws(Failure) in
            _ = try await AccountsClient(channel: scene.channel).signUp(
                AccountsSignUpRequest(tenantID: "acme", email: "eve@example.com", password: Secret("correct horse")))
        }
        let denials = try await recorder.expect("Tenants/ListDenials") { try await admin.listDenials().all() }
        #expect(denials.map(\.toggle) == [.disabledUserSignup])
        #expect(try await admin.denialCounts().map(\.count) == [1])
        let watched = try await recorder.expect("Tenants/WatchDenials") {
            var feed = admin.watchDenials(after: 0).makeAsyncIterator()
            return try await feed.next()
        }
        #expect(watched == denials.first)
    }

    /// P-256, the example of RFC 7517, appendix A.1.
    private static let publicKey = [UInt8](
        #"""
        {"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
        "y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}
        """#.utf8)
}

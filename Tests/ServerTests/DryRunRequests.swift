import Base
import Messages

extension DryRunScene {
    /// A request that the method takes, and that changes something; nil for a method without one.
    func request(_ method: String, validateOnly: Bool) -> (any Message)? {
        ofTenants(method, validateOnly) ?? ofConfigs(method, validateOnly) ?? ofCallers(method, validateOnly)
            ?? ofServiceAccounts(method, validateOnly) ?? ofUsers(method, validateOnly)
            ?? ofSignIn(method, validateOnly)
    }

    private func mask(_ path: Text) -> ProtobufFieldMask { ProtobufFieldMask(paths: [path]) }

    private func ofTenants(_ method: String, _ dry: Bool) -> (any Message)? {
        let open = Messages.Tenant(enableAnonymousUser: true)
        let path: Text = "enable_anonymous_user"
        switch method {
        case "Tenants/Create": return TenantsCreateRequest(tenantID: "newly-made", validateOnly: dry)
        case "Tenants/Update":
            return TenantsUpdateRequest(tenantID: "acme", tenant: open, updateMask: mask(path), validateOnly: dry)
        case "Tenants/UpdateMany":
            return TenantsUpdateManyRequest(
                allTenants: true, tenant: open, updateMask: mask(path), validateOnly: dry)
        case "Tenants/CopySettings":
            return TenantsCopySettingsRequest(
                tenantID: "acme", templateTenantID: "template", paths: [path], validateOnly: dry)
        case "Tenants/Delete": return TenantsDeleteRequest(tenantID: "acme", validateOnly: dry)
        default: return nil
        }
    }

    private func ofConfigs(_ method: String, _ dry: Bool) -> (any Message)? {
        switch method {
        case "EmailConfigs/Update":
            return EmailConfigsUpdateRequest(
                config: EmailConfig(senderName: "Acme"), updateMask: mask("sender_name"), validateOnly: dry)
        case "SmsConfigs/Update":
            return SmsConfigsUpdateRequest(
                config: SmsConfig(templates: [SmsTemplate(text: "Acme: %CODE%")]), updateMask: mask("templates"),
                validateOnly: dry)
        case "HookConfigs/Update":
            return HookConfigsUpdateRequest(
                config: HookConfig(allowPrivateAddresses: true), updateMask: mask("allow_private_addresses"),
                validateOnly: dry)
        case "Outbox/Retry": return OutboxRetryRequest(messageID: messageID, validateOnly: dry)
        case "Outbox/Delete": return OutboxDeleteRequest(messageID: messageID, validateOnly: dry)
        case "Providers/Create":
            let other = Provider(
                providerID: "oidc.other", clientID: "client", issuer: "https://127.0.0.1:2", allowPrivateAddresses: true
            )
            return ProvidersCreateRequest(provider: other, validateOnly: dry)
        case "Providers/Update":
            return ProvidersUpdateRequest(
                provider: Provider(providerID: "oidc.corp", displayName: "Corp"), updateMask: mask("display_name"),
                validateOnly: dry)
        case "Providers/Delete": return ProvidersDeleteRequest(providerID: "oidc.corp", validateOnly: dry)
        case "Providers/Rebind":
            return ProvidersRebindRequest(
                providerID: "oidc.corp", fromIssuer: "https://former.example", validateOnly: dry)
        default: return nil
        }
    }

    private func ofCallers(_ method: String, _ dry: Bool) -> (any Message)? {
        switch method {
        case "Project/CreateApiKey":
            return ProjectCreateApiKeyRequest(role: .app, scope: Self.everywhere, validateOnly: dry)
        case "Project/UpdateApiKey":
            return ProjectUpdateApiKeyRequest(
                apiKeyID: apiKeyID, updateMask: mask("display_name"), displayName: "shop", validateOnly: dry)
        case "Project/RotateApiKey":
            return ProjectRotateApiKeyRequest(apiKeyID: apiKeyID, overlapSeconds: 60, validateOnly: dry)
        case "Project/RevokeApiKey": return ProjectRevokeApiKeyRequest(apiKeyID: apiKeyID, validateOnly: dry)
        case "Project/CreateCertificateMapping":
            let shop = CertificateMapping(
                name: .uri("spiffe://example.org/shop"), issuerKeySha256: Text(String(repeating: "0", count: 64)),
                role: .app, scope: Self.everywhere)
            return ProjectCreateCertificateMappingRequest(certificateMapping: shop, validateOnly: dry)
        case "Project/DeleteCertificateMapping":
            return ProjectDeleteCertificateMappingRequest(certificateMappingID: mappingID, validateOnly: dry)
        case "Project/RotateSigningKey":
            return ProjectRotateSigningKeyRequest(publishAheadSeconds: 60, validateOnly: dry)
        case "Project/RevokeSigningKey":
            return ProjectRevokeSigningKeyRequest(keyID: signingKeyID, validateOnly: dry)
        default: return nil
        }
    }

    private func ofServiceAccounts(_ method: String, _ dry: Bool) -> (any Message)? {
        let id: Text = "robot"
        switch method {
        case "Project/CreateServiceAccount":
            return ProjectCreateServiceAccountRequest(
                serviceAccountID: "shop-bot", role: .app, scope: Self.everywhere, validateOnly: dry)
        case "Project/UpdateServiceAccount":
            return ProjectUpdateServiceAccountRequest(
                serviceAccountID: id, updateMask: mask("display_name"), displayName: "shop", validateOnly: dry)
        case "Project/DeleteServiceAccount":
            return ProjectDeleteServiceAccountRequest(serviceAccountID: id, validateOnly: dry)
        case "Project/CreateServiceAccountKey":
            return ProjectCreateServiceAccountKeyRequest(serviceAccountID: id, algorithm: "ES256", validateOnly: dry)
        case "Project/UploadServiceAccountKey":
            return ProjectUploadServiceAccountKeyRequest(
                serviceAccountID: id, publicKey: Self.publicKey, validateOnly: dry)
        case "Project/RevokeServiceAccountKey":
            return ProjectRevokeServiceAccountKeyRequest(serviceAccountID: id, keyID: accountKeyID, validateOnly: dry)
        default: return nil
        }
    }

    private func ofUsers(_ method: String, _ dry: Bool) -> (any Message)? {
        let uid = Self.uid
        switch method {
        case "Users/Create": return UsersCreateRequest(uid: "bob", validateOnly: dry)
        case "Users/Update":
            return UsersUpdateRequest(
                uid: uid, updateMask: mask("display_name"), displayName: "Ada", validateOnly: dry)
        case "Users/UpdateMany":
            return UsersUpdateManyRequest(
                allUsers: true, updateMask: mask("disabled"), disabled: true, validateOnly: dry)
        case "Users/SetCustomClaims":
            return UsersSetCustomClaimsRequest(
                uid: uid, customClaimsJSON: [UInt8](#"{"plan":"gold"}"#.utf8), validateOnly: dry)
        case "Users/Delete": return UsersDeleteRequest(uid: uid, validateOnly: dry)
        case "Users/BatchDelete": return UsersBatchDeleteRequest(uids: [uid], force: true, validateOnly: dry)
        case "Users/AddSecondFactor":
            return UsersAddSecondFactorRequest(uid: uid, phoneNumber: "+14155550124", validateOnly: dry)
        case "Users/RemoveSecondFactor":
            return UsersRemoveSecondFactorRequest(uid: uid, factorID: factorID, validateOnly: dry)
        case "Accounts/Update":
            return AccountsUpdateRequest(
                idToken: idToken, updateMask: mask("display_name"), displayName: "Ada", validateOnly: dry)
        case "Accounts/Delete": return AccountsDeleteRequest(idToken: idToken, validateOnly: dry)
        default: return nil
        }
    }

    private func ofSignIn(_ method: String, _ dry: Bool) -> (any Message)? {
        let uid = Self.uid
        switch method {
        case "Users/RevokeTokens": return UsersRevokeTokensRequest(uid: uid, validateOnly: dry)
        case "Users/RevokeSession":
            return UsersRevokeSessionRequest(uid: uid, sessionID: sessionID, validateOnly: dry)
        case "Users/GenerateOobLink":
            return UsersGenerateOobLinkRequest(requestType: .passwordReset, email: Self.email, validateOnly: dry)
        case "Users/CreateCustomToken": return UsersCreateCustomTokenRequest(uid: uid, validateOnly: dry)
        case "Users/Link":
            return UsersLinkRequest(
                uid: uid, provider: ProviderInfo(providerID: "oidc.corp", rawID: "4711"), validateOnly: dry)
        case "Users/Unlink": return UsersUnlinkRequest(uid: uid, providerID: "google.com", validateOnly: dry)
        default: return nil
        }
    }

    /// P-256, the example of RFC 7517, appendix A.1.
    private static let publicKey = [UInt8](
        #"""
        {"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
        "y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}
        """#.utf8)
}

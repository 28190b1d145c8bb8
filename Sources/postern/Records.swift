// How the protocol's messages look in print: the proto's field names, enums by their proto names, JSON as JSON.

import Base
import JSON
import Messages

extension Tenant: Record {
    static let columns = [
        "tenant_id", "display_name", "disable_auth", "allow_password_signup", "enable_anonymous_user",
        "client.permissions.disabled_user_signup", "client.permissions.disabled_user_deletion", "updated_at_micros",
    ]

    var id: String { tenantID.string }

    var json: JSONValue {
        let permissions = client?.permissions ?? ClientPermissions()
        return [
            "tenant_id": .string(tenantID), "display_name": .string(displayName), "disable_auth": .bool(disableAuth),
            "allow_password_signup": .bool(allowPasswordSignup), "enable_anonymous_user": .bool(enableAnonymousUser),
            "client": [
                "permissions": [
                    "disabled_user_signup": .bool(permissions.disabledUserSignup),
                    "disabled_user_deletion": .bool(permissions.disabledUserDeletion),
                ]
            ],
            "enable_email_privacy": .bool(enableEmailPrivacy),
            "enable_email_link_signin": .bool(enableEmailLinkSignin),
            "allow_international_email": .bool(allowInternationalEmail),
            "allow_costly_hashes": .bool(allowCostlyHashes),
            "password_policy": passwordPolicy.map { policy in
                [
                    "min_length": .integer(Int64(policy.minLength)),
                    "require_lowercase": .bool(policy.requireLowercase),
                    "require_uppercase": .bool(policy.requireUppercase), "require_digit": .bool(policy.requireDigit),
                    "require_symbol": .bool(policy.requireSymbol),
                    "force_upgrade_on_sign_in": .bool(policy.forceUpgradeOnSignIn),
                ]
            } ?? .null,
            "refresh_mode": name("REFRESH_MODE", refreshMode),
            "session_idle_seconds": .integer(sessionIdleSeconds),
            "session_absolute_seconds": .integer(sessionAbsoluteSeconds),
            "recent_login_seconds": .integer(recentLoginSeconds),
            "guidance": guidance.map { guidance in
                [
                    "locale": .string(guidance.locale), "message": .string(guidance.message),
                    "help_url": .string(guidance.helpURL),
                ]
            } ?? .null,
            "anonymous_user_expiry_seconds": .integer(anonymousUserExpirySeconds),
            "suspended": .bool(suspended), "suspension_reason": .string(suspensionReason),
            "quotas": [
                "stored_bytes": .integer(quotas?.storedBytes ?? 0),
                "mutations_per_second": .integer(quotas?.mutationsPerSecond ?? 0),
                "anonymous_sign_ups_per_hour": .integer(quotas?.anonymousSignUpsPerHour ?? 0),
            ],
            "allowed_continue_domains": .array(allowedContinueDomains.map { .string($0) }),
            "allow_loopback_continue_url": .bool(allowLoopbackContinueURL),
            "continue_url_rule": name("CONTINUE_URL_RULE", continueURLRule),
            "synthetic": .bool(synthetic), "created_at_micros": .integer(createdAtMicros),
            "updated_at_micros": .integer(updatedAtMicros), "revision": .integer(revision),
        ]
    }
}

extension QuotaUse: Record {
    static let columns = ["quota", "used", "limit", "refused"]

    var id: String { quota.string }

    var json: JSONValue {
        [
            "quota": .string(quota), "limit": .integer(limit), "used": .integer(used), "refused": .integer(refused),
        ]
    }
}

extension User: Record {
    static let columns = ["uid", "email", "display_name", "disabled", "providers", "created_at_micros"]

    var id: String { uid.string }

    var json: JSONValue {
        [
            "tenant_id": .string(tenantID), "uid": .string(uid), "email": .string(email),
            "email_verified": .bool(emailVerified), "display_name": .string(displayName),
            "photo_url": .string(photoURL), "phone_number": .string(phoneNumber), "disabled": .bool(disabled),
            "providers": .array(providers.map(\.json)), "custom_claims_json": embedded(customClaimsJSON),
            "created_at_micros": .integer(createdAtMicros), "last_sign_in_at_micros": .integer(lastSignInAtMicros),
            "last_refresh_at_micros": .integer(lastRefreshAtMicros),
            "tokens_valid_after_micros": .integer(tokensValidAfterMicros),
        ]
    }
}

extension ProviderInfo {
    var json: JSONValue {
        [
            "provider_id": .string(providerID), "raw_id": .string(rawID), "email": .string(email),
            "display_name": .string(displayName), "photo_url": .string(photoURL),
            "phone_number": .string(phoneNumber), "issuer": .string(issuer),
        ]
    }
}

/// The answer to a sign-up, a sign-in or a password change.
struct SignedIn: Record {
    static let columns = ["user.uid", "tokens.id_token_expires_at_micros"]

    let user: User?
    let tokens: TokenPair?

    var id: String { user?.uid.string ?? "" }

    var json: JSONValue { ["user": user?.json ?? .null, "tokens": tokens?.json ?? .null] }
}

extension TokenPair {
    var json: JSONValue {
        [
            "id_token": .string(idToken), "refresh_token": .string(refreshToken),
            "id_token_expires_at_micros": .integer(idTokenExpiresAtMicros),
        ]
    }
}

extension TokensRefreshResponse: Record {
    static let columns = ["uid", "outcome"]

    var id: String { uid.string }

    var json: JSONValue {
        [
            "uid": .string(uid), "tokens": tokens?.json ?? .null,
            "outcome": name("REFRESH_OUTCOME", outcome),
        ]
    }
}

extension TokensVerifyIdTokenResponse: Record {
    static let columns = ["uid", "tenant_id", "session_id", "expires_at_micros"]

    var id: String { uid.string }

    var json: JSONValue {
        [
            "uid": .string(uid), "tenant_id": .string(tenantID), "session_id": .string(sessionID),
            "auth_time_micros": .integer(authTimeMicros), "expires_at_micros": .integer(expiresAtMicros),
            "claims_json": embedded(claimsJSON),
        ]
    }
}

extension ApiKey: Record {
    static let columns = ["api_key_id", "role", "scope", "display_name", "created_at_micros", "revoked_at_micros"]

    var id: String { apiKeyID.string }

    var json: JSONValue {
        [
            "api_key_id": .string(apiKeyID), "role": name("ROLE", role), "scope": scope?.json ?? .null,
            "display_name": .string(displayName), "trusted_end_user_ip": .bool(trustedEndUserIP),
            "created_at_micros": .integer(createdAtMicros), "revoked_at_micros": .integer(revokedAtMicros),
            "quotas": (quotas ?? CallerQuotas()).json,
        ]
    }
}

extension CallerQuotas {
    var json: JSONValue {
        [
            "mutations_per_second": .integer(mutationsPerSecond),
            "written_bytes_per_hour": .integer(writtenBytesPerHour),
        ]
    }
}

extension Scope {
    var json: JSONValue {
        switch tenants {
        case nil: .null
        case .all(let all): ["all": .bool(all)]
        case .tenantID(let tenantID): ["tenant_id": .string(tenantID)]
        }
    }
}

extension SigningKeyInfo: Record {
    static let columns = [
        "key_id", "token_use", "algorithm", "state", "created_at_micros", "signs_from_micros", "retires_at_micros",
    ]

    var id: String { keyID.string }

    var json: JSONValue {
        [
            "key_id": .string(keyID), "token_use": name("TOKEN_USE", tokenUse), "algorithm": .string(algorithm),
            "state": name("SIGNING_KEY_STATE", state),
            "created_at_micros": .integer(createdAtMicros), "signs_from_micros": .integer(signsFromMicros),
            "retires_at_micros": .integer(retiresAtMicros),
        ]
    }
}

extension Denial: Record {
    static let columns = [
        "sequence", "time_micros", "toggle", "operation", "decision_id", "uid", "peer_address", "suppressed_count",
    ]

    var id: String { String(sequence) }

    var json: JSONValue {
        [
            "sequence": .integer(sequence), "time_micros": .integer(timeMicros), "toggle": name("TOGGLE", toggle),
            "operation": .string(operation), "decision_id": .string(decisionID), "api_key_id": .string(apiKeyID),
            "peer_address": .string(peerAddress), "uid": .string(uid),
            "identifier_hash": .string(Hex.encode(identifierHash)),
            "suppressed_count": .integer(suppressedCount),
        ]
    }
}

extension DenialCount: Record {
    static let columns = ["hour_start_micros", "operation", "toggle", "count"]

    var id: String { String(hourStartMicros) }

    var json: JSONValue {
        [
            "hour_start_micros": .integer(hourStartMicros), "operation": .string(operation),
            "toggle": name("TOGGLE", toggle), "count": .integer(count),
        ]
    }
}

extension ProjectServerInfoResponse: Record {
    static let columns = ["version", "project_id", "started_at_micros"]

    var id: String { projectID.string }

    var json: JSONValue {
        [
            "version": .string(version), "protocol_version": .integer(Int64(protocolVersion)),
            "project_id": .string(projectID), "issuer": .string(issuer), "frame_bytes_max": .integer(frameBytesMax),
            "streams_max": .integer(Int64(streamsMax)), "started_at_micros": .integer(startedAtMicros),
        ]
    }
}

extension StatsValue: Record {
    static let columns = ["name", "value"]

    var id: String { name.string }

    /// JSON has no infinities.
    var json: JSONValue { ["name": .string(name), "value": value.isFinite ? .double(value) : .null] }
}

extension ContextFile.Context: Record {
    static let columns = ["name", "server", "tenant", "api_key_file", "production"]

    var id: String { name }
}

/// A JSON document that a message carries as bytes; null when it is empty.
func embedded(_ bytes: [UInt8]) -> JSONValue {
    bytes.isEmpty ? .null : (try? JSONValue(parsing: bytes)) ?? .string(Hex.encode(bytes))
}

/// An enum's name in the proto: `disabledUserSignup` of `TOGGLE` is `TOGGLE_DISABLED_USER_SIGNUP`.
func name(_ prefix: String, _ value: some RawRepresentable<Int32>) -> JSONValue {
    var name = prefix + "_"
    for character in "\(value)" {
        if character.isUppercase { name.append("_") }
        name.append(contentsOf: character.uppercased())
    }
    return .string(Text(name))
}

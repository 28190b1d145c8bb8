public import Base
import JSON
public import Messages

/// A change that is made to many users alike. Pure.
public struct UserPatch: Sendable {
    private var disabled: Bool?
    private var claims: JSONValue?
    private var revokesTokens = false

    /// INVALID_UPDATE_MASK, CLAIMS_TOO_LARGE, INVALID_CLAIMS, FORBIDDEN_CLAIM.
    public init(_ request: UsersUpdateManyRequest, limits: Limits) throws(Failure) {
        for path in try UpdateMask<UsersUpdateManyRequest>(request.updateMask?.paths).paths {
            switch path {
            case .disabled: disabled = request.disabled
            case .revokeTokens: revokesTokens = request.revokeTokens
            case .claimsPatchJSON:
                let field = "claims_patch_json"
                try Values.checkCustomClaims(request.claimsPatchJSON, field: field, limits: limits)
                guard !request.claimsPatchJSON.isEmpty, let patch = try? JSONValue(parsing: request.claimsPatchJSON)
                else { throw .invalid(.invalidClaims, field: field, "must be a JSON object") }
                claims = patch
            }
        }
    }

    /// The change of this user; nil when the user is already as the patch wants. CLAIMS_TOO_LARGE, INVALID_CLAIMS.
    public func change(of user: User, limits: Limits) throws(Failure) -> AdminChange? {
        var change = AdminChange()
        change.revokesTokens = revokesTokens
        var isNeeded = revokesTokens
        if let disabled, disabled != user.disabled {
            change.disabled = disabled
            isNeeded = true
        }
        if let claims {
            let old = user.customClaimsJSON.isEmpty ? nil : try? JSONValue(parsing: user.customClaimsJSON)
            let new = claims.merged(into: old)
            if new != old ?? .object([]) {
                let json = new == .object([]) ? [] : new.serialized()
                try Values.checkCustomClaims(json, limits: limits)
                change.customClaims = json
                isNeeded = true
            }
        }
        return isNeeded ? change : nil
    }
}

extension JSONValue {
    /// This patch applied to `target` (RFC 7396): members replace those of their name, and null removes them.
    func merged(into target: JSONValue?) -> JSONValue {
        guard case .object(let changes) = self else { return self }
        var members = target?.object ?? []
        for change in changes {
            let place = members.firstIndex { $0.name == change.name }
            if change.value.isNull {
                if let place { members.remove(at: place) }
                continue
            }
            let value = change.value.merged(into: place.map { members[$0].value })
            if let place { members[place].value = value } else { members.append(Member(change.name, value)) }
        }
        return .object(members)
    }
}

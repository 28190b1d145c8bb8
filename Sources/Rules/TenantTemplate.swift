public import Base
public import Messages

/// Settings that are taken from another tenant. Pure.
public enum TenantTemplate {
    /// The settings that are copied, unless the request names fewer.
    public static let paths = Messages.Tenant.Path.allCases.filter { $0.rule.template == .copied }

    /// The change that makes a tenant's settings those of `template`. `wanted`: mask paths; empty for all settings that
    /// are copied. INVALID_UPDATE_MASK.
    public static func change(from template: TenantSettings, paths wanted: [Text]) throws(Failure) -> TenantChange {
        let named = try UpdateMask<Messages.Tenant>(naming: wanted).paths
        if let other = named.first(where: { $0.rule.template != .copied }) {
            throw .invalid(.invalidUpdateMask, field: "paths", "\"\(other.name)\" is not copied")
        }
        var tenant = template.tenant
        // Older servers left it unset.
        if tenant.secondFactorState == .unspecified { tenant.secondFactorState = .disabled }
        return try TenantChange(
            tenant, paths: (named.isEmpty ? paths : named).map(\.name), isProjectAdmin: true)
    }
}

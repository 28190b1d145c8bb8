public import Base
public import Messages

/// The conditions of a filter of tenants, checked. Pure.
public struct TenantQuery: Sendable {
    public let tenantIDPrefix: Text
    private let displayNamePart: [UInt8]
    private let settings: Messages.Tenant
    private let paths: [Messages.Tenant.Path]

    /// INVALID_UPDATE_MASK, INVALID_QUERY.
    public init(_ filter: TenantFilter?, limits: Limits) throws(Failure) {
        let filter = filter ?? TenantFilter()
        guard filter.tenantIDPrefix.byteCount <= Values.tenantIDByteCountMax else {
            throw .invalid(
                .invalidQuery, field: "filter.tenant_id_prefix",
                "must have at most \(Values.tenantIDByteCountMax) bytes")
        }
        guard filter.displayNamePart.byteCount <= limits.displayNameMax else {
            throw .invalid(
                .invalidQuery, field: "filter.display_name_part",
                "must have at most \(limits.displayNameMax) bytes")
        }
        self.tenantIDPrefix = filter.tenantIDPrefix
        self.displayNamePart = filter.displayNamePart.bytes.lowercasedASCII
        self.settings = filter.settings ?? Messages.Tenant()
        self.paths = try UpdateMask<Messages.Tenant>(naming: filter.settingsMask?.paths ?? []).paths
    }

    public var hasConditions: Bool { !tenantIDPrefix.isEmpty || !displayNamePart.isEmpty || !paths.isEmpty }

    public func matches(_ tenant: Messages.Tenant) -> Bool {
        tenant.tenantID.bytes.starts(with: tenantIDPrefix.bytes)
            && (displayNamePart.isEmpty || tenant.displayName.bytes.lowercasedASCII.contains(displayNamePart))
            && paths.allSatisfy { tenant.has($0, as: settings) }
    }
}

public import Base
public import Messages

/// A change of the quotas of a credential: some of them, or all. Pure.
public struct CallerQuotasChange: Sendable {
    private let wanted: CallerQuotas
    private let paths: [CallerQuotas.Path]

    /// Sets all quotas.
    public init(all wanted: CallerQuotas) {
        self.wanted = wanted
        paths = Array(CallerQuotas.Path.allCases)
    }

    /// Sets the quotas that the mask of an update names. `path` is the path of all quotas. Nil if the mask names none.
    public init?<Request: Updatable>(_ wanted: CallerQuotas?, _ mask: UpdateMask<Request>, at path: Request.Path) {
        self.wanted = wanted ?? CallerQuotas()
        paths = mask.innerPaths(of: CallerQuotas.self, at: path)
        if paths.isEmpty { return nil }
    }

    /// INVALID_QUOTA. A value that is not set is not looked at.
    public func check() throws(Failure) { try applied(to: nil).check() }

    /// The quotas after the change. `present`: the quotas before it.
    public func applied(to present: CallerQuotas?) -> CallerQuotas {
        var quotas = present ?? CallerQuotas()
        for path in paths { quotas.copy(path, from: wanted) }
        return quotas
    }
}

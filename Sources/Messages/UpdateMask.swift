public import Base

/// A field that an update may change, by its path in `update_mask`. Generated from the fields marked (updatable).
public protocol UpdatePath: CaseIterable, Hashable, Sendable {
    /// As in `update_mask`: the fields' names in the proto with dots between, for example `quotas.stored_bytes`.
    var name: Text { get }
    static var byName: [Text: Self] { get }
}

extension UpdatePath {
    static func named() -> [Text: Self] { Dictionary(uniqueKeysWithValues: allCases.map { ($0.name, $0) }) }
}

/// A message whose fields an `update_mask` names: the changed message, or the request for the change.
public protocol Updatable {
    associatedtype Path: UpdatePath
}

/// A message that is changed field by field.
public protocol UpdatableMessage: Updatable {
    /// Copies the field from `other`, also if it is empty there.
    mutating func copy(_ path: Path, from other: Self)
}

/// The fields that an update changes, each once.
///
///     let mask = try UpdateMask<Tenant>(request.updateMask?.paths)
///     for path in mask.paths { tenant.copy(path, from: wanted) }
public struct UpdateMask<Target: Updatable>: Sendable {
    /// In the order of the request.
    public let paths: [Target.Path]

    /// INVALID_UPDATE_MASK when the mask is empty, or names a field twice or one that cannot be changed.
    public init(_ names: [Text]?) throws(Failure) {
        try self.init(naming: names ?? [])
        guard !paths.isEmpty else {
            throw .invalid(.invalidUpdateMask, field: "update_mask", "must name the fields to change")
        }
    }

    /// The same, but `names` may be empty: a creation needs no mask.
    public init(naming names: [Text]) throws(Failure) {
        var paths: [Target.Path] = []
        var seen: Set<Target.Path> = []
        for name in names {
            guard let path = Target.Path.byName[name] else {
                throw .invalid(.invalidUpdateMask, field: "update_mask", "\"\(name)\" cannot be changed here")
            }
            guard seen.insert(path).inserted else {
                throw .invalid(.invalidUpdateMask, field: "update_mask", "names \"\(name)\" twice")
            }
            paths.append(path)
        }
        self.paths = paths
    }

    public func contains(_ path: Target.Path) -> Bool { paths.contains(path) }

    public func containsAny(of others: Target.Path...) -> Bool { others.contains { paths.contains($0) } }

    /// The fields of the message at `path` that the mask names. The path of the message itself names all of them.
    ///
    /// For a mask of `display_name` and `quotas.sms_per_hour`, `innerPaths(of: CallerQuotas.self, at: .quotas)` is
    /// `[.smsPerHour]`.
    public func innerPaths<Inner: Updatable>(of inner: Inner.Type, at path: Target.Path) -> [Inner.Path] {
        if contains(path) { return Array(Inner.Path.allCases) }
        let prefix = path.name.bytes + [UInt8(ascii: ".")]
        return paths.compactMap { (named: Target.Path) -> Inner.Path? in
            let name = named.name.bytes
            guard name.starts(with: prefix) else { return nil }
            return Inner.Path.byName[Text(unchecked: Array(name.dropFirst(prefix.count)))]
        }
    }

    /// For the event log: the paths' names with commas between.
    public var names: Text { Text(unchecked: Array(paths.map(\.name.bytes).joined(separator: [UInt8(ascii: ",")]))) }
}

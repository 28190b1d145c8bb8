import Base
import Crypto
import Messages
import Rules
import Store

/// A tenant's settings for mail, for SMS or for hooks, as its admins read and change them.
protocol TenantConfig: Message, UpdatableMessage {
    var updatedAtMicros: Int64 { get set }
    var revision: Int64 { get set }
    /// Whether private addresses are allowed for hosts that they were not allowed for before.
    func reachesElsewhere(than old: Self) -> Bool
}

/// A masked change of such settings. Its initializer has checked each field by itself.
protocol TenantConfigChange: Sendable {
    associatedtype Config: TenantConfig

    var mask: UpdateMask<Config> { get }
    /// Throws for fields that do not go together.
    func apply(to config: inout Config) throws(Failure)
}

/// The record in which such settings are stored, with their secrets sealed beside them. It says what differs between
/// mail, SMS and hooks. What is the same is in `TenantConfigs`.
protocol TenantConfigRecord: Message {
    associatedtype Config
    associatedtype Change: TenantConfigChange where Change.Config == Config

    static var table: Table<TenantPrefix, Self> { get }
    /// The settings of a tenant that has no record.
    static var defaults: Config { get }
    static var secrets: [ConfigSecret<Self>] { get }
    static var event: EventKind { get }
    /// What the settings name the hosts of, for the refusal of private addresses: `where mail goes`.
    static var destination: String { get }

    var config: Config? { get set }
}

/// A secret of a tenant's settings.
struct ConfigSecret<Record: TenantConfigRecord> {
    /// A part of the context under which the secret is sealed. It never changes: stored secrets are opened with it.
    let kind: String
    /// The field of the record for the sealed secret.
    let field: WritableKeyPath<Record, [UInt8]>
    /// The secret that a change brings; nil for none.
    let wanted: (Record.Change) -> Secret?
    /// Whether the settings have the secret after a change.
    let isKept: (Record.Config) -> Bool

    fileprivate func context(_ tenantID: Text) -> [UInt8] { [UInt8](kind.utf8) + [0] + tenantID.bytes }
}

/// Reads and changes each tenant's settings for mail, for SMS or for hooks. Nothing is kept in memory. Any thread.
struct TenantConfigs<Record: TenantConfigRecord>: Sendable {
    let resources: Resources
    let sealing: SealingKey

    func get(tenantID: Text) throws -> Record.Config { try stored(tenantID: tenantID).config ?? Record.defaults }

    func stored(tenantID: Text) throws -> Record {
        try resources.store.read { try $0.get(Record.table, TenantPrefix(tenantID)) } ?? Record()
    }

    /// `Secret.empty` when there is none or it was sealed under another master key.
    func open(_ secret: ConfigSecret<Record>, of record: Record, tenantID: Text) -> Secret {
        let sealed = record[keyPath: secret.field]
        guard !sealed.isEmpty else { return .empty }
        return (try? sealing.open(sealed, context: secret.context(tenantID))) ?? .empty
    }

    /// `expected`: see `Failure.requireRevision`. Refusals: those of the change; REVISION_MISMATCH;
    /// INSUFFICIENT_PERMISSION for private addresses without a project-admin.
    func update(
        _ change: Record.Change, expected: Int64, tenantID: Text, isProjectAdmin: Bool, validateOnly: Bool,
        origin: Origin
    ) async throws -> Record.Config {
        let now = resources.clock.now()
        let sealed = try seal(change, tenantID: tenantID)
        return try await resources.store.write { transaction in
            _ = try transaction.reading.liveTenant(tenantID)
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                var record = try transaction.get(Record.table, TenantPrefix(tenantID)) ?? Record()
                let old = record.config ?? Record.defaults
                try Failure.requireRevision(expected, isStill: old.revision)
                var new = old
                try change.apply(to: &new)
                if new.reachesElsewhere(than: old), !isProjectAdmin {
                    let what = "allow_private_addresses, and \(Record.destination) while it is set,"
                    throw Failure.needsProjectAdmin("\(what) are set by a project-admin.")
                }
                new.updatedAtMicros = max(now.microseconds, old.updatedAtMicros &+ 1)
                new.revision &+= 1
                if validateOnly { return new }
                record.config = new
                for (secret, sealed) in zip(Record.secrets, sealed) {
                    if let sealed { record[keyPath: secret.field] = sealed }
                    if !secret.isKept(new) { record[keyPath: secret.field] = [] }
                }
                try transaction.put(Record.table, TenantPrefix(tenantID), record)
                try transaction.appendEvent(
                    Record.event, tenantID: tenantID, origin: origin, detail: change.mask.names, now: now)
                return new
            }
        }
    }

    /// The new secrets of a change, sealed, in the order of `Record.secrets`; nil for each that it does not bring.
    private func seal(_ change: Record.Change, tenantID: Text) throws -> [[UInt8]?] {
        try Record.secrets.map { secret in
            try secret.wanted(change).map {
                try sealing.seal($0, context: secret.context(tenantID), random: resources.random)
            }
        }
    }
}

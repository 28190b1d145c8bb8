import Base
import Synchronization

/// Tells whether a dated value still agrees with the rows of some tables: for copies that are kept beside something
/// else, a connection for example.
///
///     let mark = TableMark("settings", of: [Tables.tenants.declaration], in: store)
///     let settings = try store.read { $0.dated(try settings(of: tenantID, in: $0)) }
///     …
///     if mark.isCurrent(asOf: settings.asOf) { use(settings.value) }
public final class TableMark: Sendable {
    private let changedAt = Atomic<UInt64>(0)

    public init(_ name: StaticString, of tables: [TableDeclaration], in store: Store) {
        store.follow(tables, as: name) { [weak self] in self?.move(to: $0.snapshot) }
    }

    /// Makes a mark that follows no tables: its owner follows them and moves the mark.
    init() {}

    func move(to snapshot: Snapshot) { changedAt.store(snapshot.transactionID, ordering: .releasing) }

    /// False if a row of the tables was changed after that moment, at which a value was read.
    public func isCurrent(asOf snapshot: Snapshot) -> Bool {
        changedAt.load(ordering: .acquiring) <= snapshot.transactionID
    }
}

extension ReadTransaction {
    /// The moment that this transaction sees.
    public var snapshot: Snapshot { Snapshot(of: raw) }

    /// `value`, which was made from what this transaction read, with its snapshot. Not in a write: a write may fail.
    public func dated<Value>(_ value: Value) -> Dated<Value> {
        // Proof: whether a transaction is a write's is a matter of the code, not of data.
        precondition(!isWriting, "a value is dated in a write")
        return Dated(value, asOf: snapshot)
    }
}

extension ReadTransaction {
    /// `dated` in a read; nil in a write.
    public func datedUnlessWriting<Value>(_ value: Value) -> Dated<Value>? { isWriting ? nil : dated(value) }
}

// MARK: - Following

extension Store {
    /// Has `refresh` called after every commit that changed a row of one of the tables, for good. It runs on the
    /// writer's thread and holds up all writes. If it throws, the error is logged, and `refresh` is called again after
    /// the next announcement, whatever that is about.
    ///
    /// For a copy that is read without a transaction. With a transaction, `RowCopies` and `TableMark` are simpler.
    public func follow(
        _ tables: [TableDeclaration], as name: StaticString,
        _ refresh: @escaping @Sendable (Announcement) throws -> Void
    ) {
        environment.followers.add(CopyDescription(name, of: tables), refresh)
    }

    /// Has `listener` called with the topics of every commit that announced some, after all copies are refreshed. It
    /// runs on the writer's thread and must be quick.
    public func listen(_ listener: @escaping @Sendable ([ChangeTopic]) -> Void) {
        environment.followers.add(listener)
    }

    /// The copies of rows that are kept in memory.
    public var copies: [CopyDescription] { environment.followers.copies }
}

extension CopyDescription {
    fileprivate init(_ name: StaticString, of tables: [TableDeclaration]) {
        // Proof: the tables of a copy are constants of the code, and a copy is made at each start.
        precondition(tables.allSatisfy { $0.news != .none }, "\(name) follows a table without news")
        self.init(
            name: name, tables: tables.map(\.name), kinds: Set(tables.filter { $0.news != .marked }.map(\.kind)),
            markedTableIDs: Set(tables.filter { $0.news == .marked }.map(\.id)))
    }
}

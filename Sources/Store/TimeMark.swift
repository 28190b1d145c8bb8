public import Base
import Synchronization

// The highest time that the store has seen. By it, a start notices that the machine's clock was set back while it was
// off. It is kept roughly, in commits that happen anyway.

enum TimeMark {
    static let key = [UInt8]("time".utf8)
}

extension Store {
    /// The store's time mark; nil if it has none yet.
    public func timeMark() throws(StoreError) -> Timestamp? {
        try Self.throwingStoreErrors { try read { try $0.timeMark() } }
    }
}

extension ReadTransaction {
    fileprivate func timeMark() throws(StoreError) -> Timestamp? {
        guard let bytes = try get(Schema.meta, TimeMark.key) else { return nil }
        guard bytes.count == 8 else { throw corrupt(Schema.meta.id) }
        return Timestamp(microseconds: Int64(bitPattern: bytes.bigEndianNumber))
    }
}

extension WriteTransaction {
    /// Once per batch that changed something, before its commit. The mark rises by `TimeKeeping.markRoughness` or more.
    func writeTimeMark() throws(StoreError) {
        let environment = reading.environment
        guard batch.changeCount > 0, let told = environment.configuration.timeMark() else { return }
        let time = min(told, Timestamp(microseconds: environment.timeMax.load(ordering: .relaxed)))
        if let mark = try reading.timeMark(), time < mark + TimeKeeping.markRoughness { return }
        try setTimeMark(time)
    }

    /// Lowers or raises the mark, which only an operator does.
    public func setTimeMark(_ time: Timestamp) throws(StoreError) {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: time.microseconds)
        try put(Schema.meta, TimeMark.key, bytes)
    }
}

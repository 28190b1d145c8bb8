import Base
import Glibc
import Synchronization

/// The file `witness`: a second, independent record of how far the store has come.
///
/// LMDB picks the newer of two meta pages. If that page is damaged, or the disk lost it, the other page is a sound
/// store as it was one transaction ago, in which a revoked token is valid. The witness holds how far the store had come
/// and the store's id, under a record MAC, so that a start notices this.
///
/// The witness is never ahead of the disk: it is written after the commit, or after the sync if that comes later
/// (`Durability.relaxed`). Two slots are written in turn, so that a torn write leaves the other. The writer's thread
/// writes; a thread of its own syncs within `syncDelay`, because a sync for each commit would halve the write rate.
final class Witness: Sendable {
    /// How far a store has come. LMDB's meta pages have no checksum, so that a damaged page can claim any transaction.
    /// The number of the newest event is in a record, and records have MACs.
    struct Position: Equatable, Sendable {
        var transaction: UInt64
        var event: UInt64
    }

    /// The contents of the file at the start.
    enum Reading: Equatable {
        case missing
        /// There is a file, and no slot in it carries a valid MAC.
        case unreadable
        case found(storeID: [UInt8], position: Position)
    }

    static let storeIDByteCount = 16
    static let syncDelay = Duration.milliseconds(100)

    private static let slotOffsets: [off_t] = [0, 4_096]
    private static let magic = [UInt8]("postern1".utf8)
    private static let recordByteCount = 8 + storeIDByteCount + 16
    private static let slotByteCount = recordByteCount + 16
    private static let key = [UInt8]("witness".utf8)

    private let file: Int32
    private let storeID: [UInt8]
    private let authenticator: any RecordAuthenticator
    private let failures: Counter
    private let isMoved = Atomic(false)
    private let isClosing = Atomic(false)
    private let wakeup = WakeSignal()
    private let closing = WakeSignal()
    private let thread = Mutex<OSThread?>(nil)

    /// Makes the file, or replaces it by one that states `position` of this store, and starts its thread. `replace`
    /// takes the file's path and its new bytes.
    init(
        directory: String, storeID: [UInt8], position: Position, authenticator: any RecordAuthenticator,
        failures: Counter, replacing replace: (String, [UInt8]) throws(FileError) -> Void = PrivateFile.replace(_:with:)
    ) throws(StoreError) {
        try Self.write(
            Self.slot(storeID, position, authenticator), to: directory + "/witness", authenticator, replacing: replace)
        self.file = try Self.open(directory)
        self.storeID = storeID
        self.authenticator = authenticator
        self.failures = failures
        start()
    }

    /// Goes on with the existing file.
    init(
        reopening directory: String, storeID: [UInt8], authenticator: any RecordAuthenticator, failures: Counter
    ) throws(StoreError) {
        self.file = try Self.open(directory)
        self.storeID = storeID
        self.authenticator = authenticator
        self.failures = failures
        start()
    }

    deinit { Glibc.close(file) }

    /// Writes both slots. Where the disk has no room for a second file, the slots of the present file are overwritten.
    private static func write(
        _ slot: [UInt8], to path: String, _ authenticator: any RecordAuthenticator,
        replacing replace: (String, [UInt8]) throws(FileError) -> Void
    ) throws(StoreError) {
        var bytes = slot
        bytes += [UInt8](repeating: 0, count: Int(Self.slotOffsets[1]) - slot.count)
        bytes += slot
        do throws(FileError) {
            try replace(path, bytes)
        } catch {
            let failure = StoreError(error, operation: "write the witness")
            guard failure == .full else { throw failure }
            // What was written of the new file takes room that the store may need.
            unlink(path + ".new")
            try overwrite(path, with: slot, authenticator)
        }
    }

    /// Overwrites the newest slot last. So a crash in between leaves either the old witness's newest slot in force, or
    /// a witness with another id: the next start is refused as before, and a further try overwrites both slots.
    private static func overwrite(
        _ path: String, with slot: [UInt8], _ authenticator: any RecordAuthenticator
    ) throws(StoreError) {
        let file = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else {
            throw errno == ENOENT ? StoreError.full : StoreError(code: errno, operation: "open the witness")
        }
        defer { Glibc.close(file) }
        for offset in offsetsOldestFirst(file, authenticator) {
            let count = slot.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, offset) }
            guard count == slot.count else {
                throw StoreError(code: count < 0 ? errno : ENOSPC, operation: "write the witness")
            }
            guard fdatasync(file) == 0 else { throw StoreError(code: errno, operation: "sync the witness") }
        }
    }

    /// The places of the slots: an unreadable one first, then by their positions.
    static func offsetsOldestFirst(_ file: Int32, _ authenticator: any RecordAuthenticator) -> [off_t] {
        let slots = slotOffsets.map { offset in
            (offset: offset, transaction: readSlot(file, at: offset, authenticator)?.position.transaction ?? 0)
        }
        return slots.sorted { $0.transaction < $1.transaction }.map(\.offset)
    }

    /// Nil for a slot that does not carry its MAC.
    private static func readSlot(
        _ file: Int32, at offset: off_t, _ authenticator: any RecordAuthenticator
    ) -> (storeID: [UInt8], position: Position)? {
        var slot = [UInt8](repeating: 0, count: slotByteCount)
        guard pread(file, &slot, slot.count, offset) == slot.count else { return nil }
        return open(slot, authenticator)
    }

    private static func open(_ directory: String) throws(StoreError) -> Int32 {
        let file = Glibc.open(directory + "/witness", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { throw StoreError(code: errno, operation: "open the witness") }
        return file
    }

    static func read(_ directory: String, authenticator: any RecordAuthenticator) throws(StoreError) -> Reading {
        let file = Glibc.open(directory + "/witness", O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else {
            if errno == ENOENT { return .missing }
            throw StoreError(code: errno, operation: "open the witness")
        }
        defer { Glibc.close(file) }
        var newest = Reading.unreadable
        for offset in slotOffsets {
            guard let (storeID, position) = readSlot(file, at: offset, authenticator) else { continue }
            if case .found(_, let other) = newest, other.transaction >= position.transaction { continue }
            newest = .found(storeID: storeID, position: position)
        }
        return newest
    }

    /// Notes that every transaction up to `position` is on the disk. The writer's thread only. A failure is counted and
    /// leaves the witness behind, and a start accepts a witness that is behind.
    func advance(to position: Position) {
        let slot = Self.slot(storeID, position, authenticator)
        let offset = Self.slotOffsets[Int(position.transaction & 1)]
        guard slot.withUnsafeBytes({ pwrite(file, $0.baseAddress, $0.count, offset) }) == slot.count else {
            return failures.add()
        }
        if !isMoved.exchange(true, ordering: .acquiringAndReleasing) { wakeup.signal() }
    }

    /// Syncs and ends the thread. Nothing may be written afterwards.
    func close() {
        isClosing.store(true, ordering: .releasing)
        closing.signal()
        wakeup.signal()
        thread.withLock { $0.take() }?.join()
    }
}

// MARK: - Syncing

extension Witness {
    private func start() {
        thread.withLock { $0 = OSThread(name: "store-witness") { [self] in syncUntilClosed() } }
    }

    private func syncUntilClosed() {
        while true {
            _ = wakeup.wait(until: nil)
            if !isClosing.load(ordering: .acquiring) { _ = closing.wait(until: .now.advanced(by: Self.syncDelay)) }
            if isMoved.exchange(false, ordering: .acquiringAndReleasing), fdatasync(file) != 0 { failures.add() }
            if isClosing.load(ordering: .acquiring) { return }
        }
    }
}

// MARK: - A slot's bytes

extension Witness {
    /// magic (8) ‖ store id (16) ‖ transaction (8, big-endian) ‖ event (8) ‖ MAC (16).
    private static func slot(
        _ storeID: [UInt8], _ position: Position, _ authenticator: any RecordAuthenticator
    ) -> [UInt8] {
        var bytes = magic + storeID
        bytes.append(bigEndian: position.transaction)
        bytes.append(bigEndian: position.event)
        return bytes + tag(of: bytes, authenticator)
    }

    private static func open(
        _ slot: [UInt8], _ authenticator: any RecordAuthenticator
    ) -> (storeID: [UInt8], position: Position)? {
        let record = Array(slot[..<recordByteCount])
        guard record.starts(with: magic), Array(slot[recordByteCount...]) == tag(of: record, authenticator) else {
            return nil
        }
        func number(_ offset: Int) -> UInt64 {
            record[(magic.count + storeIDByteCount + offset)...].prefix(8).bigEndianNumber
        }
        return (
            Array(record[magic.count..<magic.count + storeIDByteCount]),
            Position(transaction: number(0), event: number(8))
        )
    }

    private static func tag(of record: [UInt8], _ authenticator: any RecordAuthenticator) -> [UInt8] {
        let tag = key.withUnsafeBytes { key in
            record.withUnsafeBytes { authenticator.tag(table: Schema.witnessID, key: key, value: $0) }
        }
        return [tag.0, tag.1].flatMap { part in withUnsafeBytes(of: part.littleEndian) { [UInt8]($0) } }
    }
}

/// The long values that a transaction put together for its readers. Only the transaction's thread.
final class LongValues {
    private var values: [UnsafeMutableRawBufferPointer] = []
    private var keepers = 0

    deinit { removeAll() }

    var isEmpty: Bool { values.isEmpty }

    func add(byteCount: Int) -> UnsafeMutableRawBufferPointer {
        let value = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 8)
        values.append(value)
        return value
    }

    /// Until `endKeeping`, no value is freed: its reader keeps pointers.
    func beginKeeping() { keepers += 1 }
    func endKeeping() { keepers -= 1 }

    func remove(_ value: UnsafeRawBufferPointer) {
        guard keepers == 0,
            let index = values.lastIndex(where: { UnsafeRawPointer($0.baseAddress) == value.baseAddress })
        else { return }
        values.remove(at: index).deallocate()
    }

    func removeAll() {
        guard !values.isEmpty else { return }
        for value in values { value.deallocate() }
        values = []
    }
}

import Base
import CMessages
import Glibc

/// The memory of the message a thread is decoding or encoding: a bump pointer with a byte budget.
///
/// Owned by its thread (pthread key), used for one message at a time, emptied after each. It keeps one chunk; the
/// further chunks of a large message go back to the system.
struct Arena {
    static let keptByteCount = 16 * 1024
    private static let chunkByteCountMax = 1024 * 1024

    /// At the start of every chunk.
    private struct Chunk {
        var previous: UnsafeMutablePointer<Chunk>?
        var end: UnsafeMutableRawPointer
    }

    private struct State {
        var chunk: UnsafeMutablePointer<Chunk>
        var cursor: UnsafeMutableRawPointer
        var end: UnsafeMutableRawPointer
        var budget = 0
        var reservedByteCount = 0
        var isSpent = false
        var isInUse = false
    }

    private let state: UnsafeMutablePointer<State>

    // The thread's arena

    private static let kept = ThreadPointer { pointer in
        if let pointer { Arena(data: pointer).destroy() }
    }

    /// Made on the thread's first use, freed when the thread ends.
    static var ofThisThread: Arena {
        if let pointer = kept.value { return Arena(data: pointer) }
        let arena = Arena()
        kept.value = arena.data
        return arena
    }

    /// The arena as C passes it around.
    var data: UnsafeMutableRawPointer { UnsafeMutableRawPointer(state) }

    init(data: UnsafeMutableRawPointer) {
        state = data.assumingMemoryBound(to: State.self)
    }

    /// For a caller that ends it with `destroy`.
    init() {
        guard let chunk = Arena.makeChunk(byteCount: Arena.keptByteCount, previous: nil) else {
            preconditionFailure("no memory for a thread's arena")
        }
        state = .allocate(capacity: 1)
        state.initialize(
            to: State(chunk: chunk, cursor: UnsafeMutableRawPointer(chunk + 1), end: chunk.pointee.end))
        state.pointee.reservedByteCount = Arena.keptByteCount
    }

    func destroy() {
        reset(wiping: true)
        free(state.pointee.chunk)
        state.deallocate()
    }

    // One message

    /// Starts a message that may take `budget` bytes.
    func begin(budget: Int) {
        precondition(!state.pointee.isInUse, "an arena holds one message at a time")
        state.pointee.isInUse = true
        state.pointee.isSpent = false
        state.pointee.budget = budget
    }

    /// True once a request was refused: the budget, or the system's memory, is spent.
    var isSpent: Bool { state.pointee.isSpent }

    /// How much of the message's budget is left.
    var budgetLeft: Int { state.pointee.budget }

    /// The bytes that the arena has taken from the system.
    var reservedByteCount: Int { state.pointee.reservedByteCount }

    /// Aligned for every C type of CMessages (8). Nil when the budget is spent.
    func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer? {
        guard byteCount >= 0, byteCount <= state.pointee.budget else {
            state.pointee.isSpent = true
            return nil
        }
        let rounded = (byteCount + 7) & ~7
        if state.pointee.end - state.pointee.cursor < rounded, !grow(by: rounded) {
            state.pointee.isSpent = true
            return nil
        }
        state.pointee.budget -= rounded
        let start = state.pointee.cursor
        state.pointee.cursor = start + rounded
        return start
    }

    /// Forgets the message; `wiping` overwrites its bytes.
    func reset(wiping: Bool) {
        if wiping {
            var end = state.pointee.cursor
            var next: UnsafeMutablePointer<Chunk>? = state.pointee.chunk
            while let chunk = next {
                let start = UnsafeMutableRawPointer(chunk + 1)
                explicit_bzero(start, end - start)
                next = chunk.pointee.previous
                if let next { end = next.pointee.end }
            }
        }
        while let previous = state.pointee.chunk.pointee.previous {
            free(state.pointee.chunk)
            state.pointee.chunk = previous
        }
        state.pointee.reservedByteCount = Arena.keptByteCount
        state.pointee.cursor = UnsafeMutableRawPointer(state.pointee.chunk + 1)
        state.pointee.end = state.pointee.chunk.pointee.end
        state.pointee.isInUse = false
    }

    /// Each chunk is twice the one before, so that their number stays small.
    private func grow(by byteCount: Int) -> Bool {
        let header = MemoryLayout<Chunk>.stride
        let doubled = 2 * (state.pointee.chunk.pointee.end - UnsafeMutableRawPointer(state.pointee.chunk))
        let size = max(byteCount + header, min(doubled, Arena.chunkByteCountMax))
        guard let chunk = Arena.makeChunk(byteCount: size, previous: state.pointee.chunk) else { return false }
        state.pointee.chunk = chunk
        state.pointee.cursor = UnsafeMutableRawPointer(chunk + 1)
        state.pointee.end = chunk.pointee.end
        state.pointee.reservedByteCount += size
        return true
    }

    private static func makeChunk(
        byteCount: Int, previous: UnsafeMutablePointer<Chunk>?
    ) -> UnsafeMutablePointer<Chunk>? {
        guard let start = malloc(byteCount) else { return nil }
        let chunk = start.bindMemory(to: Chunk.self, capacity: 1)
        chunk.initialize(to: Chunk(previous: previous, end: start + byteCount))
        return chunk
    }
}

extension ProtobufCAllocator {
    /// Takes from `arena` and never gives back: the arena is reset as a whole (protobuf-c.h, ProtobufCAllocator).
    init(_ arena: Arena) {
        self.init(
            alloc: { data, byteCount in data.flatMap { Arena(data: $0).allocate(byteCount) } },
            free: { _, _ in },
            allocator_data: arena.data)
    }
}

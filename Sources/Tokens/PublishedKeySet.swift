import Synchronization

/// The place where the present `KeySet` is read. It has one writer (`TokenSigner`) and any number of readers.
public final class PublishedKeySet: Sendable {
    private let storage: Mutex<KeySet>
    /// How many sets with different keys or times were published.
    private let number = Atomic<Int>(0)
    private let copies = PerThread<Mutex<Copy?>> { Mutex(nil) }

    private struct Copy {
        let number: Int
        let keySet: KeySet
    }

    public init(_ keySet: KeySet = KeySet(entries: [])) { storage = Mutex(keySet) }

    public var current: KeySet { storage.withLock { $0 } }

    /// The present set, in a copy for threads that check a signature with each call: they use it without moving counts
    /// of references between processors' caches. The copy is made when the thread first asks for a set.
    var currentForThisThread: KeySet {
        copies.withOwn { copy in
            copy.withLock { copy in
                let number = currentNumber
                if let copy, copy.number == number { return copy.keySet }
                let keySet = current.copied()
                copy = Copy(number: number, keySet: keySet)
                return keySet
            }
        }
    }

    /// The number of the present set, or of one before it. Read it before `current`: what is verified with that set is
    /// then good as long as the number stays the same.
    ///
    /// Readers only load it, so that it stays in the caches of all processors.
    var currentNumber: Int { number.load(ordering: .acquiring) }

    package func publish(_ keySet: KeySet) {
        storage.withLock { current in
            let isOther = !current.hasSameKeys(as: keySet)
            current = keySet
            // After the set: see `currentNumber`.
            if isOther { number.add(1, ordering: .releasing) }
        }
    }
}

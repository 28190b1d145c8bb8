// Both modules declare the types of threads, as in Time.swift.
internal import CThread
import Glibc

/// A pointer of which each thread has its own, null at first: pthread_key_create(3). Keep it in a static constant,
/// because its key is never freed.
public struct ThreadPointer: Sendable {
    private let key: pthread_key_t

    /// `free` is called with the pointer of a thread that ends, unless it is null.
    public init(free: (@convention(c) (UnsafeMutableRawPointer?) -> Void)? = nil) {
        var key = pthread_key_t()
        let code = pthread_key_create(&key, free)
        // Proof: it fails only without memory, or after 1,024 keys (PTHREAD_KEYS_MAX), which are constants of the code.
        precondition(code == 0, "pthread_key_create failed with \(code)")
        self.key = key
    }

    /// The calling thread's own pointer.
    public var value: UnsafeMutableRawPointer? {
        get { pthread_getspecific(key) }
        nonmutating set { pthread_setspecific(key, newValue) }
    }
}

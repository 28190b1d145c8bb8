import Glibc
import Synchronization

/// An operating-system thread with a name and a stack of its own; join it before it is dropped.
///
/// Event loops, the store's writer and the worker pools run on these, never on the Swift pool: they block.
public final class OSThread: Sendable {
    private final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = String(name.prefix(15))
            self.run = run
        }
    }

    private let handle: Mutex<pthread_t?>

    /// Starts at once. `name` is cut to 15 bytes (proc(5), comm).
    public init(name: String, stackByteCount: Int = 2 * 1024 * 1024, _ run: @escaping @Sendable () -> Void) {
        self.handle = Mutex(Self.start(Body(name: name, run: run), stackByteCount: stackByteCount, isDetached: false))
    }

    /// Starts a thread that nobody joins: for work that ends by itself and may outlive whoever asked for it.
    public static func startDetached(
        name: String, stackByteCount: Int = 2 * 1024 * 1024, _ run: @escaping @Sendable () -> Void
    ) {
        _ = start(Body(name: name, run: run), stackByteCount: stackByteCount, isDetached: true)
    }

    private static func start(_ body: Body, stackByteCount: Int, isDetached: Bool) -> pthread_t {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, stackByteCount)
        if isDetached { pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED)) }
        var thread = pthread_t()
        let box = Unmanaged.passRetained(body).toOpaque()
        let code = pthread_create(
            &thread, &attributes,
            { argument in
                let body = Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue()
                nameCurrentThread(body.name)
                body.run()
                return nil
            }, box)
        pthread_attr_destroy(&attributes)
        precondition(code == 0, "pthread_create failed with \(code)")
        return thread
    }

    /// What the calling thread has had of a processor so far, in nanoseconds (CLOCK_THREAD_CPUTIME_ID).
    public static var processorNanoseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Waits until the thread's body returned. Later calls do nothing.
    public func join() {
        if let thread = handle.withLock({ $0.take() }) { pthread_join(thread, nil) }
    }

    deinit {
        precondition(handle.withLock { $0 == nil }, "an OSThread was dropped without join()")
    }
}

/// A counting semaphore for handing work to an OSThread. The C type is `sem_t`.
public final class Semaphore: @unchecked Sendable {
    // Unchecked: sem_post(3) and sem_wait(3) are thread-safe on one semaphore; the pointer never changes.
    private let storage: UnsafeMutablePointer<sem_t>

    public init() {
        storage = .allocate(capacity: 1)
        sem_init(storage, 0, 0)
    }

    deinit {
        sem_destroy(storage)
        storage.deallocate()
    }

    public func signal() { sem_post(storage) }

    @available(*, noasync, message: "blocks the thread")
    public func wait() {
        while sem_wait(storage) != 0 {}
    }

    /// Takes a signal that is there already; false when there is none.
    public func takeSignal() -> Bool { sem_trywait(storage) == 0 }
}

/// glibc hides pthread_setname_np(3) from Swift; the kernel takes the name through /proc as well.
private func nameCurrentThread(_ name: String) {
    let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = write(file, name, name.utf8.count)
    close(file)
}

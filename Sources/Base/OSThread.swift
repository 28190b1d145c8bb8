internal import CThread
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

    private init(_ handle: pthread_t) { self.handle = Mutex(handle) }

    /// Starts at once. `name` is cut to 15 bytes (proc(5), comm). Traps without memory: for threads that a process has
    /// from its start.
    public convenience init(
        name: String, stackByteCount: Int = stackByteCount, _ run: @escaping @Sendable () -> Void
    ) {
        do throws(ThreadError) {
            self.init(try Self.start(Body(name: name, run: run), stackByteCount, isDetached: false))
        } catch {
            preconditionFailure("\(name): \(error)")
        }
    }

    /// Starts a thread in a process that goes on without it.
    public static func started(
        name: String, _ run: @escaping @Sendable () -> Void
    ) throws(ThreadError) -> OSThread {
        OSThread(try start(Body(name: name, run: run), stackByteCount, isDetached: false))
    }

    /// Starts a thread that nobody joins: for work that ends by itself and may outlive its caller.
    public static func startDetached(
        name: String, stackByteCount: Int = stackByteCount, _ run: @escaping @Sendable () -> Void
    ) throws(ThreadError) {
        _ = try start(Body(name: name, run: run), stackByteCount, isDetached: true)
    }

    /// The bytes of a thread's stack, where nothing else is said.
    public static let stackByteCount = 2 * 1024 * 1024

    private static func start(_ body: Body, _ stackByteCount: Int, isDetached: Bool) throws(ThreadError) -> pthread_t {
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
        guard code == 0 else {
            Unmanaged<Body>.fromOpaque(box).release()
            throw ThreadError(code: code)
        }
        return thread
    }

    /// The calling thread's number: 0 for the first thread that asked for its own, 1 for the second, and so on.
    public static var currentNumber: Int {
        if let known = ownNumber.value { return Int(bitPattern: known) - 1 }
        // Kept as one more, because a thread that has not asked yet has a null pointer.
        let one = numbers.add(1, ordering: .relaxed).newValue
        ownNumber.value = UnsafeMutableRawPointer(bitPattern: one)
        return one - 1
    }

    private static let numbers = Atomic<Int>(0)
    private static let ownNumber = ThreadPointer()

    /// The processor time that the calling thread has used so far, in nanoseconds (CLOCK_THREAD_CPUTIME_ID).
    public static var processorNanoseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// How often the calling thread was interrupted so far, for another thread to run (getrusage(2), `ru_nivcsw`).
    public static var interruptionCount: Int64 { Int64(thread_interruptions()) }

    /// Waits until the thread's body returned. Later calls do nothing.
    public func join() {
        if let thread = handle.withLock({ $0.take() }) { pthread_join(thread, nil) }
    }

    deinit {
        precondition(handle.withLock { $0 == nil }, "an OSThread was dropped without join()")
    }
}

/// The system starts no thread, because there is no memory or a limit is reached: pthread_create(3).
public struct ThreadError: Error, Sendable, CustomStringConvertible {
    /// The number of the error, as of errno(3).
    public let code: Int32

    public var description: String { "no thread could be started: " + String(cString: strerror(code)) }
}

/// A pointer of which each thread has its own, null at first: pthread_key_create(3). Keep it in a static constant,
/// because its key is never freed.
public struct ThreadPointer: Sendable {
    private let key: pthread_key_t

    /// `free` is called with the pointer of a thread that ends, unless it is null.
    public init(free: (@convention(c) (UnsafeMutableRawPointer?) -> Void)? = nil) {
        var key = pthread_key_t()
        let code = pthread_key_create(&key, free)
        precondition(code == 0, "pthread_key_create failed with \(code)")
        self.key = key
    }

    /// The calling thread's own pointer.
    public var value: UnsafeMutableRawPointer? {
        get { pthread_getspecific(key) }
        nonmutating set { pthread_setspecific(key, newValue) }
    }
}

/// The share of the processors that the calling thread gets.
///
/// It is only a request: if the system grants less, the thread runs on as before.
public enum ThreadPriority: Sendable, Equatable {
    /// setpriority(2), 0...19: each step takes a tenth less of a processor that others want too.
    case niceness(Int32)
    /// SCHED_IDLE of sched(7): runs while no other thread wants the processor, and gives way at once.
    case idle

    /// Applies the priority. Where the system refuses the scheduling policy itself, as some containers do, a nice value
    /// takes its place.
    public func applyToCurrentThread() {
        switch self {
        case .niceness(let value):
            // Linux keeps a nice value per thread, and 0 means the calling one (setpriority(2), "C library/kernel
            // differences"). It fails only for a priority above the present one (EACCES).
            if value > 0 { _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, value) }
        case .idle:
            ThreadPriority.niceness(19).applyToCurrentThread()
            var parameters = sched_param()
            _ = sched_setscheduler(0, THREAD_POLICY_IDLE, &parameters)
        }
    }

    /// Shortens the calling thread's turns: a thread with short turns that wakes up runs before a thread with longer
    /// turns, even in the middle of that thread's turn. It is for threads that work for microseconds while others wait.
    /// `nanoseconds` are 100,000 to 100,000,000.
    public static func takeShortTurns(nanoseconds: UInt64 = 100_000) { _ = thread_set_turn(nanoseconds) }
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

    /// Waits at most this long, and returns false if no signal came. Setting the wall clock makes no difference.
    @available(*, noasync, message: "blocks the thread")
    public func wait(for duration: Duration) -> Bool {
        let nanoseconds = Instant.now.advanced(by: duration).nanoseconds
        var until = timespec(
            tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        while sem_clockwait(storage, CLOCK_MONOTONIC, &until) != 0 {
            if errno != EINTR { return false }
        }
        return true
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

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

/// glibc hides pthread_setname_np(3) from Swift; the kernel takes the name through /proc as well.
private func nameCurrentThread(_ name: String) {
    let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = write(file, name, name.utf8.count)
    close(file)
}

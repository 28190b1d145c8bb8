import Base
import Glibc
import JSON
import Messages
import Wire

/// `postern-bench allocations`: how often the codec's paths call malloc, against a file of thresholds.
///
/// The counter is a preloaded library (tools/allocations/count.c), so that no program of ours replaces malloc.
struct AllocationsCommand {
    private let thresholdsPath: String?
    private typealias Counter = @convention(c) () -> UInt64

    init(_ arguments: inout Arguments) throws {
        thresholdsPath = arguments.text("--check")
        try arguments.finish()
    }

    func run() throws {
        guard let symbol = dlsym(nil, "postern_allocation_count") else {
            throw BenchError(.notReady, "no counter is loaded: run tools/allocations/run")
        }
        let counter = unsafeBitCast(symbol, to: Counter.self)
        let measured = CodecPath.all().map { (name: $0.name, count: Self.count(counter, $0.body)) }
        for (name, count) in measured { try TextFile.printOut("\(padded(name, to: 32))\(count)\n") }
        if let thresholdsPath { try check(measured, thresholdsPath) }
    }

    /// The calls of malloc in one run of `body`; exact, because the codec does the same each time.
    private static func count(_ counter: Counter, _ body: () -> Void) -> Int {
        let runs = 64
        body()  // fills what is made once and kept
        let before = counter()
        for _ in 0..<runs { body() }
        return (Int(counter() - before) + runs / 2) / runs
    }

    /// Each path needs a threshold, and each threshold a path: a misspelt name is an error.
    private func check(_ measured: [(name: String, count: Int)], _ path: String) throws {
        guard let thresholds = try JSONValue(parsing: TextFile.read(path)).object else {
            throw BenchError(.notReady, "\(path) must hold an object of numbers")
        }
        var complaints: [String] = []
        for member in thresholds where !measured.contains(where: { $0.name == member.name.string }) {
            complaints.append("\(member.name): there is no such path")
        }
        for (name, count) in measured {
            guard let threshold = thresholds.first(where: { $0.name.string == name })?.value.integer else {
                complaints.append("\(name): has no threshold")
                continue
            }
            if count > threshold {
                complaints.append("\(name): \(count) allocations, at most \(threshold) are allowed")
            }
            if count < threshold {
                complaints.append("\(name): \(count) allocations: lower the threshold from \(threshold)")
            }
        }
        guard complaints.isEmpty else { throw BenchError(.regression, complaints.joined(separator: "\n")) }
    }
}

/// A stretch of the codec that each request goes through, with data of a usual size.
private struct CodecPath {
    let name: String
    let body: () -> Void

    static func all() -> [CodecPath] {
        let limits = Limits()
        let input = ReusedBuffer()
        let output = ReusedBuffer()
        input.bytes.appendRequest(stream: 1, service: "postern.v1.Users", method: "Get") {
            UsersGetRequest(tenantID: "bench", uid: UserName.uid(1)).encode(into: &$0)
        }
        let frame = input.bytes.copyBytes()
        let request = Array(frame[FrameHeader.byteCount...])
        let user = user
        let encodedUser = user.encoded()
        let requestMessage = UsersGetRequest(tenantID: "bench", uid: UserName.uid(1)).encoded()
        return [
            CodecPath(name: "decode_frame") {
                var decoder = FrameDecoder(payloadHardMax: limits.framePayloadHardMax)
                _ = decoder.next(in: &input.bytes, payloadMax: limits.framePayloadMax, now: .distantFuture)
            },
            CodecPath(name: "read_request_envelope") {
                request.withUnsafeBytes { _ = try? RequestEnvelope(reading: $0, limits: limits.messages) }
            },
            CodecPath(name: "decode_users_get_request") {
                requestMessage.withUnsafeBytes { _ = try? UsersGetRequest(decoding: $0, limits: limits.messages) }
            },
            CodecPath(name: "decode_user") {
                encodedUser.withUnsafeBytes { _ = try? User(decoding: $0, limits: limits.messages) }
            },
            CodecPath(name: "encode_user") {
                user.encode(into: &output.bytes)
                output.bytes.consume(output.bytes.readableByteCount)
            },
            CodecPath(name: "append_response") {
                encodedUser.withUnsafeBytes { _ = output.bytes.appendResponse(stream: 1, payload: $0) }
                output.bytes.consume(output.bytes.readableByteCount)
            },
            CodecPath(name: "append_failure") {
                output.bytes.appendFailure(stream: 1, failure)
                output.bytes.consume(output.bytes.readableByteCount)
            },
        ]
    }

    private static let failure = Failure(.userNotFound, "There is no such user.")

    private static var user: User {
        var user = User()
        user.tenantID = "bench"
        user.uid = UserName.uid(1)
        user.email = UserName.email(1)
        user.displayName = "Bench User 1"
        user.providers = [ProviderInfo(providerID: "password", rawID: user.email, email: user.email)]
        return user
    }
}

/// A `ByteBuffer` that closures can share.
private final class ReusedBuffer {
    var bytes = ByteBuffer()
}

// One transfer on a worker thread: libcurl's callbacks and the data that they collect.

import Base
import CCurl
import Synchronization

/// Cancels a transfer, which ends within a second, or when it waits for a name no longer. May be set from any thread.
final class CancelFlag: Sendable {
    private let flag = Atomic(false)

    var isSet: Bool { flag.load(ordering: .relaxed) }

    func set() { flag.store(true, ordering: .relaxed) }
}

/// Lives on the stack of one call; libcurl's callbacks come on the same thread, inside of `curl_easy_perform`.
final class HTTPExchange {
    private let request: HTTPRequest
    private let cancelFlag: CancelFlag
    private var answer = HTTPAnswer(status: 0)
    private var headByteCount = 0
    private var isTooLarge = false
    private var isAddressRefused = false
    private var isAddressUsed = false

    static let headByteCountMax = 64 * 1024

    init(_ request: HTTPRequest, cancelFlag: CancelFlag) {
        self.request = request
        self.cancelFlag = cancelFlag
    }

    /// Blocks for up to the request's time limit, cut at `deadline`. `lookUp` finds the addresses of the URL's host
    /// within the time that it is given.
    func perform(
        on handle: CurlHandle, certificateFile: String?, deadline: Instant,
        lookUp: (Duration) throws -> [IPAddress]
    ) throws -> HTTPAnswer {
        let remaining = Duration.nanoseconds(deadline.nanoseconds(since: .now))
        guard remaining > .zero else { throw OutboundError.timedOut }
        let fields = try fieldList()
        let context = Unmanaged.passUnretained(self).toOpaque()
        var opener = postern_curl_opener(
            may_open: { context, address, byteCount in
                guard let context, let address else { return 0 }
                let exchange = Unmanaged<HTTPExchange>.fromOpaque(context).takeUnretainedValue()
                return exchange.mayOpen(IPAddress(bytes: Array(UnsafeBufferPointer(start: address, count: byteCount))))
                    ? 1 : 0
            }, context: context)
        return try withExtendedLifetime((self, fields, request)) {
            try withUnsafePointer(to: &opener) { opener in
                handle.reset(certificateFile: certificateFile)
                // The handle must keep nothing of this call after it.
                defer { curl_easy_reset(handle.pointer) }
                configure(handle, fields: fields)
                handle.check(postern_curl_set_opener(handle.pointer, opener), CURLOPT_OPENSOCKETFUNCTION)
                setCallbacks(handle, context)
                return try withBody(handle) {
                    let code = try handle.perform(
                        port: request.url.port, timeout: min(request.timeout, remaining),
                        connectTimeout: request.connectTimeout, lookUp: lookUp)
                    return try finish(code, handle)
                }
            }
        }
    }

    private func configure(_ handle: CurlHandle, fields: CurlList) {
        handle.set(CURLOPT_URL, request.url.text.string)
        handle.set(CURLOPT_PROTOCOLS_STR, request.url.isPlaintext ? "http" : "https")
        handle.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        handle.set(CURLOPT_HTTPHEADER, fields)
        handle.check(
            postern_curl_set_size(
                handle.pointer, CURLOPT_MAXFILESIZE_LARGE, curl_off_t(request.bodyByteCountMax)),
            CURLOPT_MAXFILESIZE_LARGE)
    }

    private func setCallbacks(_ handle: CurlHandle, _ context: UnsafeMutableRawPointer) {
        handle.set(CURLOPT_WRITEDATA, pointer: context)
        handle.set(CURLOPT_HEADERDATA, pointer: context)
        handle.set(CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            guard let context else { return 0 }
            let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return Unmanaged<HTTPExchange>.fromOpaque(context).takeUnretainedValue().receive(body: piece)
        }
        handle.set(CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            guard let context else { return 0 }
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return Unmanaged<HTTPExchange>.fromOpaque(context).takeUnretainedValue().receive(line: line)
        }
        handle.check(
            postern_curl_set_progress(
                handle.pointer,
                { context, _, _, _, _ in
                    guard let context else { return 1 }
                    let exchange = Unmanaged<HTTPExchange>.fromOpaque(context).takeUnretainedValue()
                    return exchange.cancelFlag.isSet ? 1 : 0
                }, context),
            CURLOPT_XFERINFOFUNCTION)
    }

    /// libcurl does not copy a body that it gets by pointer, so no copy of a secret is left in it.
    private func withBody<Result>(_ handle: CurlHandle, _ body: () throws -> Result) rethrows -> Result {
        guard case .post(let secret) = request.method else { return try body() }
        return try secret.withBytes { bytes in
            handle.set(CURLOPT_POST, 1)
            handle.check(
                postern_curl_set_size(handle.pointer, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(bytes.count)),
                CURLOPT_POSTFIELDSIZE_LARGE)
            // An empty body gets an address too: without an address, libcurl would ask a read callback for the body.
            return try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { none in
                handle.set(CURLOPT_POSTFIELDS, pointer: bytes.baseAddress ?? UnsafeRawPointer(none.baseAddress))
                return try body()
            }
        }
    }

    /// `Expect:` switches off libcurl's wait of a second for "100 Continue", which it does for larger bodies.
    private func fieldList() throws(OutboundError) -> CurlList {
        let list = CurlList(["User-Agent: postern", "Expect:"])
        for field in request.fields {
            guard field.value.bytes.allSatisfy({ (0x20...0x7E).contains($0) }), !field.value.isEmpty else {
                throw .malformedRequest
            }
            list.append("\(field.name): \(field.value)")
        }
        return list
    }

    // MARK: Callbacks

    private func mayOpen(_ address: IPAddress?) -> Bool {
        guard let address, request.policy.permits(address, isPlaintext: request.url.isPlaintext) else {
            isAddressRefused = true
            return false
        }
        isAddressUsed = true
        return true
    }

    /// Takes a piece of the body. Any return value but the piece's size ends the transfer.
    private func receive(body piece: UnsafeRawBufferPointer) -> Int {
        guard piece.count <= request.bodyByteCountMax - answer.body.count else {
            isTooLarge = true
            return 0
        }
        answer.body.append(contentsOf: piece)
        return piece.count
    }

    private func receive(line: UnsafeRawBufferPointer) -> Int {
        headByteCount += line.count
        guard headByteCount <= Self.headByteCountMax else {
            isTooLarge = true
            return 0
        }
        // libcurl would undo a compression that nobody asked for, several in a row, and no limit of time ends that: an
        // answer of 18 KB cost 15 s of processor time (libcurl 7.88.1).
        guard !HTTPHead.namesForeignCoding(line) else { return 0 }
        HTTPHead.read(line, into: &answer)
        return line.count
    }

    private func finish(_ code: CURLcode, _ handle: CurlHandle) throws -> HTTPAnswer {
        if cancelFlag.isSet { throw CancellationError() }
        // 0 if no status came.
        var status = 0
        postern_curl_get_long(handle.pointer, CURLINFO_RESPONSE_CODE, &status)
        if !request.isBodyNeeded, (200...299).contains(status) { return HTTPAnswer(status: status) }
        let trouble: OutboundError? =
            if isTooLarge { .tooLarge } else if code == CURLE_OK { nil } else { error(of: code) }
        // A status below 200 announces the answer's own one, which did not come then.
        if let trouble, !request.keepsStatus || status < 200 { throw trouble }
        if (300...399).contains(status) { throw OutboundError.redirected }
        answer.status = status
        if let trouble {
            answer.body = []
            answer.bodyError = trouble
        }
        return answer
    }

    private func error(of code: CURLcode) -> OutboundError {
        switch code {
        case CURLE_OPERATION_TIMEDOUT: .timedOut
        case CURLE_COULDNT_RESOLVE_HOST: .cannotResolve
        case CURLE_COULDNT_CONNECT: isAddressRefused && !isAddressUsed ? .addressNotAllowed : .cannotConnect
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_ISSUER_ERROR, CURLE_USE_SSL_FAILED:
            .untrusted
        case CURLE_FILESIZE_EXCEEDED: .tooLarge
        case CURLE_URL_MALFORMAT: .malformedRequest
        default: .broken
        }
    }
}

// One easy handle and the few functions of it that all protocols need. Everything about libcurl is in this target.

import Base
import CCurl
import Glibc

/// The global state of libcurl. It is made once, before the first handle (curl_global_init(3)), and never taken down.
enum CurlLibrary {
    static let start: Void = {
        let code = curl_global_init(Int(CURL_GLOBAL_DEFAULT))
        precondition(code == CURLE_OK, "curl_global_init returned \(code.rawValue)")
    }()

    /// Whether libcurl has the name of a file with the system's certificates built in, and this file can be read.
    static let hasCertificateFile: Bool = {
        guard let file = curl_version_info(CURLVERSION_SEVENTH)?.pointee.cainfo else { return false }
        return access(file, R_OK) == 0
    }()
}

/// An easy handle with its connections. Used by one thread at a time, which may be any thread.
///
/// Unchecked: libcurl-thread(3): "you must never share the same handle in multiple threads" at the same time; a handle
/// is with exactly one caller or in the pool of idle handles, whose lock orders the callers.
final class CurlHandle: @unchecked Sendable {
    let pointer: UnsafeMutableRawPointer
    /// Whether the transfer under way failed because libcurl needs the addresses of a name.
    private var isLookupWanted = false

    init() {
        CurlLibrary.start
        guard let pointer = curl_easy_init() else { preconditionFailure("curl_easy_init made nothing") }
        self.pointer = pointer
    }

    deinit { curl_easy_cleanup(pointer) }

    /// Forgets every option, keeps the open connections, and sets the options that hold for all requests: no proxy from
    /// the environment, no signals, no files of the user, TLS 1.2 or later, verified. `certificateFile`: PEM
    /// certificates to trust instead of the system's.
    func reset(certificateFile: String?) {
        curl_easy_reset(pointer)
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_PROXY, "")
        set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_SSL_VERIFYPEER, 1)
        set(CURLOPT_SSL_VERIFYHOST, 2)
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let certificateFile { set(CURLOPT_CAINFO, certificateFile) }
        // libcurl has a directory of the system's certificates built in, too. It would trust these as well as
        // `certificateFile`. With a directory it also reads the file anew for each connection; without one, a handle
        // keeps what it read for a day (`Curl_ssl_setup_x509_store`, libcurl 7.87 and later).
        if certificateFile != nil || CurlLibrary.hasCertificateFile { set(CURLOPT_CAPATH, pointer: nil) }
    }

    // If libcurl refuses an option, it is our own mistake: the linked libcurl is older than the one compiled against.

    func set(_ option: CURLoption, _ value: Int) { check(postern_curl_set_long(pointer, option, value), option) }

    func set(_ option: CURLoption, _ value: String) { check(postern_curl_set_string(pointer, option, value), option) }

    func set(_ option: CURLoption, pointer value: UnsafeRawPointer?) {
        check(postern_curl_set_pointer(pointer, option, value), option)
    }

    func set(_ option: CURLoption, _ list: CurlList) {
        check(postern_curl_set_list(pointer, option, list.head), option)
    }

    func set(_ option: CURLoption, _ callback: postern_curl_data_callback) {
        check(postern_curl_set_data_callback(pointer, option, callback), option)
    }

    func set(_ duration: Duration, as option: CURLoption) {
        // 0 would mean no limit at all.
        set(option, Int(max(1, min(duration.microseconds / 1_000, 3_600_000))))
    }

    func check(_ code: CURLcode, _ option: CURLoption) {
        precondition(code == CURLE_OK, "curl_easy_setopt(\(option.rawValue)) returned \(code.rawValue)")
    }
}

extension CurlHandle {
    /// Does the transfer that the options describe, to a server at `port`. It takes no longer than `timeout`, if
    /// `lookUp` takes no longer than it is given.
    ///
    /// Nothing ends a lookup of libcurl's own, so libcurl looks up no name. It asks before it would look one up, and is
    /// refused. `lookUp` then returns the addresses, and the transfer begins again with these. A transfer over a
    /// connection that is open already needs no lookup.
    func perform(
        port: UInt16, timeout: Duration, connectTimeout: Duration, lookUp: (Duration) throws -> [IPAddress]
    ) throws -> CURLcode {
        let end = Instant.now.advanced(by: timeout)
        // The addresses of an earlier transfer are forgotten.
        let first = attempt(CurlList(["-*:\(port)"]), timeout, connectTimeout)
        guard isLookupWanted else { return first }
        // An open connection may have been silent for long before its server cut it.
        let remainingForLookup = Duration.nanoseconds(end.nanoseconds(since: .now))
        guard remainingForLookup > .zero else { return CURLE_OPERATION_TIMEDOUT }
        let addresses = try lookUp(min(connectTimeout, remainingForLookup))
        let remaining = Duration.nanoseconds(end.nanoseconds(since: .now))
        guard remaining > .zero else { return CURLE_OPERATION_TIMEDOUT }
        let texts = addresses.map { $0.bytes.count == 4 ? "\($0)" : "[\($0)]" }
        // The star stands for every name: libcurl may spell the URL's host in another way than we do.
        let second = attempt(CurlList(["+*:\(port):\(texts.joined(separator: ","))"]), remaining, connectTimeout)
        return isLookupWanted && second != CURLE_OK ? CURLE_COULDNT_RESOLVE_HOST : second
    }

    /// `resolve`: an entry of CURLOPT_RESOLVE(3).
    private func attempt(_ resolve: CurlList, _ timeout: Duration, _ connectTimeout: Duration) -> CURLcode {
        isLookupWanted = false
        set(timeout, as: CURLOPT_TIMEOUT_MS)
        set(min(connectTimeout, timeout), as: CURLOPT_CONNECTTIMEOUT_MS)
        let refuse: curl_resolver_start_callback = { _, _, context in
            guard let context else { return 1 }
            Unmanaged<CurlHandle>.fromOpaque(context).takeUnretainedValue().isLookupWanted = true
            return 1
        }
        check(
            postern_curl_set_resolver_start(pointer, refuse, Unmanaged.passUnretained(self).toOpaque()),
            CURLOPT_RESOLVER_START_FUNCTION)
        set(CURLOPT_RESOLVE, resolve)
        // libcurl does not copy the list, so it must not find it after this.
        defer { set(CURLOPT_RESOLVE, CurlList()) }
        return withExtendedLifetime((self, resolve)) { curl_easy_perform(pointer) }
    }
}

/// A list of C strings in libcurl's form; must outlive the transfer.
final class CurlList {
    private(set) var head: UnsafeMutablePointer<curl_slist>?

    init(_ texts: [String] = []) {
        for text in texts { append(text) }
    }

    deinit { curl_slist_free_all(head) }

    func append(_ text: String) {
        guard let longer = curl_slist_append(head, text) else { preconditionFailure("curl_slist_append: no memory") }
        head = longer
    }
}

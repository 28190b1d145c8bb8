import Base
import Glibc
import Reactor
import TestSupport
import Testing
import Transport

@Suite struct HTTPServerTests {
    private static let routes: HTTPServer.Routes = [
        "/healthz": { HTTPResponse(body: Array("ok\n".utf8)) },
        "/keys": {
            HTTPResponse(
                contentType: "application/json", fields: [("Cache-Control", "max-age=60")], body: Array("{}".utf8))
        },
        "/K": { HTTPResponse(body: []) },
        "/down": { HTTPResponse(status: 503, body: []) },
    ]

    /// Sends `request` to a server with the routes above and returns everything that it answers until it closes.
    private func answer(to request: String, at address: SocketAddress = .loopback()) throws -> String {
        let loop = EventLoop(name: "http")
        let server = try HTTPServer(on: loop, at: address, routes: Self.routes)
        loop.start()
        let answer = exchange(request, port: server.port, isIPv6: address.host.contains(":"))
        end(loop)
        server.close()
        return answer
    }

    @Test func aRouteAnswersAndCloses() throws {
        let answer = try answer(to: "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(answer.contains("Content-Type: text/plain; charset=utf-8\r\n"))
        #expect(answer.contains("Content-Length: 3\r\n"))
        #expect(answer.hasSuffix("\r\n\r\nok\n"))
    }

    @Test func aRouteChoosesItsTypeAndFields() throws {
        let answer = try answer(to: "GET /keys?v=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(answer.contains("Content-Type: application/json\r\n"))
        #expect(answer.contains("Cache-Control: max-age=60\r\n"))
        #expect(answer.hasSuffix("\r\n\r\n{}"))
    }

    @Test func theAnswerToHeadIsThatToGetWithoutTheBody() throws {
        let whole = try answer(to: "GET /keys HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try answer(to: "HEAD /keys HTTP/1.1\r\nHost: x\r\n\r\n") + "{}" == whole)
        #expect(try answer(to: "HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n").hasPrefix("HTTP/1.1 404 "))
    }

    @Test func aRouteChoosesItsStatus() throws {
        #expect(try answer(to: "GET /down HTTP/1.1\r\nHost: x\r\n\r\n").hasPrefix("HTTP/1.1 503 "))
    }

    @Test(arguments: ["/", "/healthz/", "/Healthz", "/../healthz", "/%68ealthz"])
    func anotherPathIsNotFound(path: String) throws {
        #expect(try answer(to: "GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n").hasPrefix("HTTP/1.1 404 "))
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
    func anotherMethodIsNotAllowed(method: String) throws {
        let answer = try answer(to: "\(method) /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 405 "))
        #expect(answer.contains("Allow: GET, HEAD\r\n"))
    }

    @Test func aServerThatIsDroppedCutsItsConnectionsOff() async throws {
        let loop = EventLoop(name: "http")
        let metrics = HTTPServerMetrics()
        var server: HTTPServer? = try HTTPServer(
            on: loop, at: .loopback(), routes: Self.routes, metrics: metrics)
        let port = try #require(server?.port)
        loop.start()
        let clients = (0..<3).map { _ in connectedSocket(port: port, isIPv6: false) }
        try await until("three connections are open") { metrics.connectionsOpen.value >= 3 }
        end(loop)
        server = nil
        #expect(server == nil)
        for client in clients {
            #expect(receive(from: client).isEmpty)
            close(client)
        }
    }

    @Test func aHeadAtTheLimitIsServedAndOneAboveRefused() throws {
        let start = "GET /healthz HTTP/1.1\r\nPad: "
        let padding = HTTPServer.headByteCountMax - start.utf8.count - 4
        let atLimit = start + String(repeating: "x", count: padding) + "\r\n\r\n"
        #expect(atLimit.utf8.count == HTTPServer.headByteCountMax)
        #expect(try answer(to: atLimit).hasPrefix("HTTP/1.1 200 "))
        let above = start + String(repeating: "x", count: padding + 16) + "\r\n\r\n"
        #expect(!(try answer(to: above)).contains(" 200 "))
    }

    @Test func aBodyAboveTheLimitIsRefused() throws {
        let count = HTTPServer.bodyByteCountMax + 1
        let body = String(repeating: "x", count: count)
        let answer = try answer(to: "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: \(count)\r\n\r\n\(body)")
        #expect(!answer.contains(" 200 ") && !answer.contains(" 405 "))
    }

    @Test(arguments: [
        "\r\n\r\n", "nonsense\r\n\r\n", "GET /healthz\r\n\r\n", "GET http:// HTTP/1.1\r\n\r\n", "\u{0}\u{1}",
    ])
    func nonsenseNeverServes(request: String) throws {
        #expect(!(try answer(to: request)).contains(" 200 "))
    }

    @Test(arguments: [
        "GET http://x/healthz HTTP/1.1\r\n\r\n", "GET /healthz?a=b HTTP/1.0\r\n\r\n", "GET /healthz HTTP/1.1\n\n",
    ])
    func aRequestMayHaveAnotherForm(request: String) throws {
        #expect(try answer(to: request).hasPrefix("HTTP/1.1 200 "))
    }

    /// `String`s would be equal: U+212A is canonically a K.
    @Test func pathsAreComparedByteByByte() throws {
        #expect(try answer(to: "GET /K HTTP/1.1\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
        #expect(try answer(to: "GET /\u{212A} HTTP/1.1\r\n\r\n").hasPrefix("HTTP/1.1 404 "))
    }

    @Test(arguments: [false, true]) func connectionsThatOnlyBeginGiveWayToOthers(countsByAddress: Bool) throws {
        var limits = Limits()
        if countsByAddress { limits.httpConnectionsPerAddressMax = 4 } else { limits.httpConnectionsMax = 4 }
        let metrics = HTTPServerMetrics()
        let loop = EventLoop(name: "http")
        let server = try HTTPServer(
            on: loop, at: .loopback(), routes: Self.routes, limits: limits, metrics: metrics)
        loop.start()
        var halves: [Int32] = []
        for _ in 0..<20 {
            halves.append(connectedSocket(port: server.port, isIPv6: false))
            send("GET /healthz HTTP/1.1\r\nPad:", to: halves[halves.count - 1])
        }
        let answer = exchange("GET /healthz HTTP/1.1\r\n\r\n", port: server.port, isIPv6: false)
        #expect(answer.hasPrefix("HTTP/1.1 200 "))
        #expect(metrics.connectionsDisplaced.value == 17)
        for half in halves { close(half) }
        end(loop)
        server.close()
    }

    @Test func aRequestThatDoesNotComeToItsEndIsCutOff() throws {
        var limits = Limits()
        limits.httpRequestTimeout = .milliseconds(500)
        let loop = EventLoop(name: "http")
        let server = try HTTPServer(on: loop, at: .loopback(), routes: Self.routes, limits: limits)
        loop.start()
        let half = connectedSocket(port: server.port, isIPv6: false)
        send("GET /healthz HTTP/1.1\r\nPad:", to: half)
        #expect(receive(from: half).isEmpty)
        close(half)
        end(loop)
        server.close()
    }

    @Test func itListensOnIPv6() throws {
        let address = try #require(SocketAddress("[::1]:0"))
        #expect(try answer(to: "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", at: address).hasPrefix("HTTP/1.1 200 "))
    }

    @Test func aTakenPortIsAnErrorThatNamesIt() throws {
        let loop = EventLoop(name: "http")
        let first = try HTTPServer(on: loop, at: .loopback(), routes: [:])
        let error = #expect(throws: ListenError.self) {
            _ = try HTTPServer(on: loop, at: first.address, routes: [:])
        }
        #expect(error?.code == EADDRINUSE)
        #expect(error?.description.contains("127.0.0.1:\(first.port)") == true)
        first.close()
        first.close()
    }
}

private func end(_ loop: EventLoop) {
    loop.stop()
    loop.join()
}

private func send(_ text: String, to fileDescriptor: Int32) {
    let count = text.utf8.count
    precondition(write(fileDescriptor, text, count) == count)
}

/// The next text, at most 64 KiB; empty when the connection has ended.
private func receive(from fileDescriptor: Int32) -> String {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = read(fileDescriptor, &bytes, bytes.count)
    if count < 0, errno == EAGAIN { Issue.record("the server neither answered nor ended the connection") }
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
}

/// One blocking exchange over a socket of our own; the client's sending side is closed after the request.
private func exchange(_ request: String, port: UInt16, isIPv6: Bool) -> String {
    let client = connectedSocket(port: port, isIPv6: isIPv6)
    defer { close(client) }
    send(request, to: client)
    shutdown(client, Int32(SHUT_WR))
    var answer = ""
    while true {
        let part = receive(from: client)
        if part.isEmpty { return answer }
        answer += part
    }
}

private func connectedSocket(port: UInt16, isIPv6: Bool) -> Int32 {
    let client = socket(isIPv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var patience = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    if isIPv6 {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        address.sin6_addr = in6addr_loopback
        connectOrTrap(client, &address, MemoryLayout<sockaddr_in6>.size)
    } else {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        connectOrTrap(client, &address, MemoryLayout<sockaddr_in>.size)
    }
    return client
}

private func connectOrTrap(_ socket: Int32, _ address: UnsafeRawPointer, _ byteCount: Int) {
    let code = connect(socket, address.assumingMemoryBound(to: sockaddr.self), socklen_t(byteCount))
    precondition(code == 0, "connect failed: errno \(errno)")
}

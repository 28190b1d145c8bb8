import Base
import Glibc
import Reactor
import TestSupport
import Testing
import Wire

@testable import Transport

/// Unix domain sockets: whose file it is, who may connect, and what is left behind.
@Suite struct UnixSocketTests {
    private static func mode(_ path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode : nil
    }

    private static func code(_ address: SocketAddress) -> Int32 {
        do throws(ListenError) {
            try ListeningSocket(address, backlog: 1).close()
            return 0
        } catch { return error.code }
    }

    @Test func `The file has its mode, and is gone at the end`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/rpc.sock"
            let address = try #require(SocketAddress("unix:\(path)"))
            for mode: mode_t in [0o600, 0o660, 0o666] {
                let socket = try ListeningSocket(address, backlog: 1, mode: mode)
                #expect(Self.mode(path) == S_IFSOCK | mode)
                socket.close()
                #expect(Self.mode(path) == nil)
            }
        }
    }

    @Test func `A socket that nobody answers on is replaced, and no other file`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/rpc.sock"
            let address = try #require(SocketAddress("unix:\(path)"))
            // A server that was killed leaves a socket like this: bound, and nobody listens.
            let dead = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            #expect(address.withSockaddr { bind(dead, $0, $1) } == 0)
            close(dead)
            #expect(Self.mode(path) != nil)
            #expect(Self.code(address) == 0)
            writeFile(path, [1])
            #expect(Self.code(address) == EEXIST)
            #expect(readFile(path) == [1])
            unlink(path)
            symlink("/nonexistent", path)
            #expect(Self.code(address) == EEXIST)
            #expect(Self.code(try #require(SocketAddress("unix:/nonexistent/rpc.sock"))) == ENOENT)
        }
    }

    @Test func `A socket that somebody answers on is left alone`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/rpc.sock"
            let address = try #require(SocketAddress("unix:\(path)"))
            let first = try ListeningSocket(address, backlog: 1)
            #expect(Self.code(address) == EADDRINUSE)
            #expect(Self.mode(path) != nil)
            first.close()
            // The other program knows nothing of our lock.
            let other = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(other) }
            #expect(address.withSockaddr { bind(other, $0, $1) } == 0 && listen(other, 1) == 0)
            #expect(Self.code(address) == EADDRINUSE)
            #expect(Self.mode(path) != nil)
        }
    }

    @Test func `A file that took the name meanwhile is not removed`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/rpc.sock"
            let socket = try ListeningSocket(try #require(SocketAddress("unix:\(path)")), backlog: 1)
            unlink(path)
            writeFile(path, [1])
            socket.close()
            #expect(readFile(path) == [1])
        }
    }

    @Test func `The peer is the user of the other end`() throws {
        let (client, server) = try RawClient.pair()
        defer { close(server) }
        let peer = Peer(of: server)
        #expect(peer.kind == .local(user: getuid()) && peer.isOnThisMachine)
        #expect(peer.address == Text("unix:\(getuid())") && peer.group == peer.address)
        withExtendedLifetime(client) {}
    }
}

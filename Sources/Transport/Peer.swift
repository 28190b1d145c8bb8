import Base
import Glibc
import Reactor

/// The other end of a connection, as limits, logs and audit know it.
struct Peer: Sendable {
    enum Kind: Sendable, Equatable {
        case network(IPAddress)
        /// A process of this machine, by its user id.
        case local(user: UInt32)
        case unknown
    }

    let kind: Kind
    /// Whether no network carries the bytes that come from it.
    let isOnThisMachine: Bool

    /// The peer of a connected socket.
    init(of descriptor: Int32) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
        }
        // Proof: sa_family_t has 16 bits.
        let family = code == 0 ? Int32(storage.ss_family) : AF_UNSPEC
        let address = withUnsafeBytes(of: &storage) { IPAddress(family: family, socketAddress: $0) }
        if let address {
            (kind, isOnThisMachine) = (.network(address), address.withoutMapping.reach == .loopback)
        } else {
            let user = family == AF_UNIX ? Self.localUser(descriptor) : nil
            kind = user.map { Kind.local(user: $0) } ?? .unknown
            isOnThisMachine = family == AF_UNIX
        }
    }

    /// The client that a proxy says it speaks for. The client's bytes cross a network on their way to the proxy, unless
    /// both are on this machine.
    init(_ address: IPAddress, behind proxy: Peer) {
        kind = .network(address)
        isOnThisMachine = proxy.isOnThisMachine && address.withoutMapping.reach == .loopback
    }

    var ipAddress: IPAddress? {
        if case .network(let address) = kind { address } else { nil }
    }

    var isLocalUser: Bool {
        if case .local = kind { true } else { false }
    }

    /// The address without a port, for logs and audit: `192.0.2.1`, `unix:1000`; empty for an unknown peer.
    var address: Text {
        switch kind {
        case .network(let address): Text(unchecked: [UInt8]("\(address)".utf8))
        case .local(let user): Text(unchecked: [UInt8]("unix:\(user)".utf8))
        case .unknown: .empty
        }
    }

    /// The key that all connections of one peer have in common, for limits: see `PeerGroup`. All connections of a local
    /// user belong to one peer.
    var group: Text {
        switch kind {
        case .network(let address): PeerGroup.of(address)
        case .local, .unknown: address
        }
    }

    /// The user that connected, as the kernel noted it then (SO_PEERCRED, unix(7)): a process, a user and a group.
    private static func localUser(_ descriptor: Int32) -> UInt32? {
        var credentials: (process: Int32, user: UInt32, group: UInt32) = (0, .max, .max)
        // Proof: twelve bytes.
        var length = socklen_t(MemoryLayout.size(ofValue: credentials))
        let code = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length)
        return code == 0 ? credentials.user : nil
    }
}

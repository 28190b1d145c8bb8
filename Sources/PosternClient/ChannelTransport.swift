public import Base

/// Makes a channel's connections without TCP to an address: to a server in the same process, as in tests, or through a
/// socket that the application has connected itself.
///
/// TLS, back-off and everything else work as on any other channel.
///
/// ```swift
/// let transport = ChannelTransport(name: "in-process", connect: makeConnection)
/// let channel = try Channel(transport: transport, credentials: .apiKey(apiKey))
/// print(channel.options.timeout)
/// ```
public struct ChannelTransport: Sendable {
    /// The name in errors, and the name that the server's certificate must be for, unless the TLS options have one.
    public let name: String
    let connect: @Sendable () throws(Failure) -> Int32

    /// `connect` makes one connection and returns its descriptor: a stream socket, such as one end of socketpair(2).
    /// From then on the channel owns the descriptor.
    ///
    /// `connect` is called on the thread that the channel shares with others, so it must not block. The error that it
    /// throws is the reason of the calls' failure.
    public init(name: String, connect: @escaping @Sendable () throws(Failure) -> Int32) {
        self.name = name
        self.connect = connect
    }
}

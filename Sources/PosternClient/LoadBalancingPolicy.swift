/// How a channel with several servers, or with a name that has several addresses, divides its calls among them.
///
/// ```swift
/// var options = ChannelOptions()
/// options.loadBalancing = .roundRobin
/// let channel = try Channel(
///     address: "auth-1.internal:7400,auth-2.internal:7400", credentials: .apiKey(apiKey), options: options)
/// print(channel.options.loadBalancing)
/// ```
public enum LoadBalancingPolicy: Sendable, Equatable {
    /// The channel tries the addresses in order and stays with the first one that works. When that one is lost or tells
    /// its clients to leave, the channel goes to another one.
    case pickFirst
    /// The channel keeps a connection to each address that it can reach, and calls go to them in turn.
    case roundRobin
}

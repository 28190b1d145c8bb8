import Glibc

/// Why a port could not be opened.
public struct ListenError: Error, CustomStringConvertible {
    public let address: SocketAddress
    public let code: Int32

    public var description: String {
        let hint =
            switch code {
            case EADDRINUSE: "; another program uses it: stop that one, or choose another address"
            case EEXIST: "; it is no socket, and was left as it is"
            default: ""
            }
        return "cannot listen on \(address): \(String(cString: strerror(code)))\(hint)"
    }
}

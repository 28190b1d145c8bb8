public import Base

/// A mail server and how to connect to it.
public struct SMTPServer: Sendable {
    public enum Security: Sendable {
        /// STARTTLS (RFC 3207). Without TLS, no mail is sent.
        case startTLS
        /// TLS from the first byte (RFC 8314).
        case tls
        /// Clear text, to this machine only, and if the policy permits that.
        case none
    }

    public var host: Text
    public var port: UInt16
    public var security: Security
    /// Empty = no authentication.
    public var username: Text
    public var password: Secret
    public var policy: NetworkPolicy

    public init(
        host: Text, port: UInt16, security: Security, username: Text, password: Secret, policy: NetworkPolicy
    ) {
        self.host = host
        self.port = port
        self.security = security
        self.username = username
        self.password = password
        self.policy = policy
    }
}

/// The reason why a mail was not sent. Holds nothing of the server's answers.
public enum SMTPError: Error, Sendable, Equatable {
    /// The server was not reached, broke off, or refused the mail for now (4yz): worth another attempt.
    case transient(code: Int, OutboundError?)
    /// The server refused the mail for good (5yz).
    case permanent(code: Int)
    /// The server does not take the user name and password.
    case notAuthenticated
    /// The server got the whole mail and did not say in time whether it takes it. It may deliver the mail.
    case unanswered
    /// This server stops. The other one has not got the whole mail.
    case stopped
    /// An address is not ASCII, and the server does not offer SMTPUTF8 (RFC 6531).
    case noInternationalMail
}

/// How long the parts of an SMTP exchange may take.
public struct SMTPTimes: Sendable {
    /// From looking up the server's name until the server has the whole mail.
    public var send = Duration.seconds(30)
    /// From looking up the server's name to the server's answer to the whole mail. RFC 5321 (§4.5.3.2.6) gives a server
    /// ten minutes for this answer; a thread is held meanwhile.
    public var whole = Duration.seconds(55)
    /// For the server's answer to QUIT, which changes nothing. libcurl looks at it once a second.
    public var quit = Duration.seconds(2)
    /// For looking up the server's name, and again for connecting.
    public var connect = Duration.seconds(10)

    public init() {}
}

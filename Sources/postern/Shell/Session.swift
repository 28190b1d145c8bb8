import Base
import Glibc
import JSON
import Messages
import PosternClient
import Synchronization

/// The means of a command: its arguments, the settings from them and from the context, the server, the output.
final class Session: Sendable {
    let arguments: Arguments
    let console: Console
    let output: Output
    let contexts: ContextFile
    private let isReadOnly: Bool
    private let sendsIdempotencyKeys: Bool
    private let openChannel = Mutex<Channel?>(nil)
    private let otherChannels = Mutex<[Channel]>([])
    private let isAnnounced = Mutex(false)
    private let hasWarnedOfClearText = Mutex(false)
    private let hasAskedForTenant = Mutex(false)
    private let target: Mutex<ChangeTarget>

    /// `isReadOnly`: the command changes nothing on the server. `target`: the tenant that it changes.
    init(
        _ arguments: Arguments, console: Console, isReadOnly: Bool, sendsIdempotencyKeys: Bool = false,
        target: ChangeTarget = .usualTenant
    ) throws {
        self.arguments = arguments
        self.console = console
        self.isReadOnly = isReadOnly
        self.sendsIdempotencyKeys = sendsIdempotencyKeys
        self.target = Mutex(target)
        self.contexts = try ContextFile(environment: console.environment)
        let formats = Output.Format.allCases.map { ($0.rawValue, $0) }
        self.output = Output(
            format: try arguments.choice("output", of: formats) ?? .table,
            fields: try arguments.elements("fields"),
            isQuiet: arguments.isSet("quiet"), hasHeaders: !arguments.isSet("no-headers"), isOfChange: !isReadOnly,
            console: console)
    }

    // Settings

    func destination() throws(CommandError) -> Destination {
        try Destination(arguments, environment: console.environment, contexts: contexts)
    }

    /// Empty: the default pool, or the tenant the key is bound to.
    func tenantID() throws(CommandError) -> Text {
        hasAskedForTenant.withLock { $0 = true }
        return Text(try destination().tenant)
    }

    /// Names the tenant in which nothing was found: an empty list of the wrong tenant looks like good news.
    func sayThatNothingWasFound() throws(CommandError) {
        guard !output.format.isForPrograms, hasAskedForTenant.withLock(\.self) else { return }
        let destination = try destination()
        guard destination.tenant.isEmpty else { return say("nothing was found in tenant \(destination.tenant)") }
        say(
            "nothing was found. No tenant was named: the default pool was asked, or the key's own. -t names one"
                + (destination.unusedTenant.map { "; not used: \($0)" } ?? ""))
    }

    private func credentials() throws(CommandError) -> Credentials {
        guard let path = try destination().keyFile else { return .none }
        return .apiKey(try KeyFile.credential(in: File.read(path), named: path))
    }

    // The server

    /// The channel, made at the first use. Before that, names the server that a change goes to.
    func channel() throws -> Channel {
        try announceChange()
        let destination = try destination()
        return try openChannel.withLock { channel in
            if let channel { return channel }
            let made = try makeChannel(to: destination.server, of: destination)
            channel = made
            return made
        }
    }

    /// A channel to each server that `--server` names, for calls to every one of them.
    func channelToEachServer() throws -> [(address: String, channel: Channel)] {
        let destination = try destination()
        return try Destination.servers(in: destination.server).map { address in
            let channel = try makeChannel(to: address, of: destination)
            otherChannels.withLock { $0.append(channel) }
            return (address, channel)
        }
    }

    private func makeChannel(to address: String, of destination: Destination) throws -> Channel {
        var options = ChannelOptions()
        options.software = "postern-cli"
        options.tls = destination.tls
        let credentials = try credentials()
        if destination.keyFile != nil, destination.tls == nil, !Destination.isOnThisMachine(address) {
            warnOfClearText()
        }
        do throws(Failure) {
            return try Channel(address: address, credentials: credentials, options: options)
        } catch {
            throw CommandError.usage("the server's \(error.message)", hint: "--server HOST:PORT says where it is")
        }
    }

    /// Warns once: a network may be trusted, so the call is made all the same. The warning is printed with -q, too,
    /// because a key that others can read is no mere message. A program gets it as a line of JSON of its own.
    private func warnOfClearText() {
        guard !hasWarnedOfClearText.withLock({ $0 }) else { return }
        hasWarnedOfClearText.withLock { $0 = true }
        let warning = "the key crosses the network in clear: use --tls"
        guard output.format.isForPrograms, !console.messagesAreForTerminal else {
            return console.say("warning: \(warning)")
        }
        let json: JSONValue = ["warning": .string(Text(warning))]
        console.writeMessage(json.serialized() + [0x0A])
    }

    func close() async {
        await openChannel.withLock { $0.take() }?.shutdown()
        for channel in otherChannels.withLock({ $0 }) { await channel.shutdown() }
    }

    /// For one unary call. A command that changes something sends an idempotency key of its own with each call: if the
    /// answer is lost, the channel asks again, and the change is made once. On a call that only reads, the key means
    /// nothing.
    func callOptions(withKey: Bool = true) throws(CommandError) -> CallOptions {
        let timeout = try arguments.duration("timeout")
        // No answer comes in no time. Some programs mean "for ever" by 0.
        if timeout == Duration.zero { throw .usage("--timeout is above 0", hint: "without it: 10s") }
        var options = CallOptions(timeout: timeout, requestID: arguments.text("request-id") ?? .empty)
        if withKey, sendsIdempotencyKeys, !isValidatingOnly { options.idempotencyKey = Self.newIdempotencyKey() }
        return options
    }

    /// Begins with a word, because a key of 32 hexadecimal digits alone also names an attempt to refresh a session.
    private static func newIdempotencyKey() -> Text {
        let numbers = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 16) }
        return Text("postern-" + numbers.joined(separator: "-"))
    }

    /// Streams run as long as they take.
    var streamOptions: CallOptions { CallOptions(requestID: arguments.text("request-id") ?? .empty) }

    var isValidatingOnly: Bool { arguments.isSet("dry-run") }

    /// Tells people what was done, or with --dry-run what would be done.
    func say(_ message: String) {
        if !output.isQuiet { console.say(isValidatingOnly ? "without --dry-run: \(message)" : message) }
    }

    /// Shows the progress on a terminal, in the place of the line before. An empty line removes it.
    func showProgress(_ line: String) {
        guard console.messagesAreForTerminal, !output.isQuiet else { return }
        console.writeMessage([UInt8]("\r\(line)\u{1B}[K".utf8))
    }

    /// False if nobody reads messages: with -q, or for a program that reads JSON from standard error.
    private var saysWhatItDoes: Bool {
        !output.isQuiet && (!output.format.isForPrograms || console.messagesAreForTerminal)
    }

    /// To be called when a new secret was printed. If standard output has failed, says `advice` on the lost secret, and
    /// throws.
    func checkThatSecretWasPrinted(ifLost advice: String) throws(OutputFailed) {
        if console.outputErrorCode() != nil, !isValidatingOnly { console.say(advice) }
        try console.checkOutput()
    }

    // Changes

    /// To be called before the first question and the first call, if only the request says what the command changes.
    func setTarget(_ target: ChangeTarget) { self.target.withLock { $0 = target } }

    /// Names the server, once, before a change or a question. Asks for a confirmation if it is a production server.
    private func announceChange() throws(CommandError) {
        if isReadOnly || isAnnounced.withLock({ $0 }) { return }
        let destination = try destination()
        if let context = destination.productionContext, !isValidatingOnly, !arguments.isSet("production") {
            try confirmProduction(context, destination)
        }
        // A program that reads JSON from standard error finds the server in a failure's JSON.
        if saysWhatItDoes {
            let trial = isValidatingOnly ? "dry run: this would be done, and nothing is changed, " : ""
            console.say(trial + destination.description(of: target.withLock { $0 }))
        }
        isAnnounced.withLock { $0 = true }
        if !isValidatingOnly { Interruption.noteChange() }
    }

    /// --yes does not answer this question: scripts and fingers add it by habit.
    private func confirmProduction(_ context: String, _ destination: Destination) throws(CommandError) {
        let consequence = "This changes production, \(destination.server)."
        guard let answer = console.ask("\(consequence)\nType \(context) to go on: ", false) else {
            throw .usage("there is no terminal to ask on", hint: "\(consequence) Add --production if you mean it.")
        }
        guard answer == [UInt8](context.utf8) else { throw .declined }
    }

    // Questions

    /// Confirms a change that can be put right again with some effort.
    func confirm(_ question: String) throws(CommandError) {
        try announceChange()
        if arguments.isSet("yes") || isValidatingOnly { return }
        guard let answer = console.ask("\(question) [y/N] ", false) else {
            throw .usage("there is no terminal to ask on", hint: "add --yes if you are sure: \(question)")
        }
        let words = String(decoding: answer, as: UTF8.self).lowercased()
        guard words == "y" || words == "yes" else { throw .declined }
    }

    /// Confirms a change that cannot be undone: the name has to be typed, or given with --confirm.
    func confirm(_ consequence: String, byName name: String) throws(CommandError) {
        try announceChange()
        // A trial tells of a wrong name, as the change would.
        if let given = arguments.value("confirm") {
            guard given == name else {
                throw CommandError("--confirm says \"\(given)\", not \"\(name)\"", exitCode: .declined)
            }
            return
        }
        if isValidatingOnly { return }
        guard let answer = console.ask("\(consequence)\nType \(name) to go on: ", false) else {
            let value = name.contains(" ") ? "\"\(name)\"" : name
            throw .usage(
                "there is no terminal to ask on", hint: "\(consequence) Add --confirm=\(value) if you are sure.")
        }
        guard answer == [UInt8](name.utf8) else { throw .declined }
    }

    // Values that must not stand on the command line

    /// The secret in the file that the flag names, or nil; "-" is standard input. One line feed at the end does not
    /// count.
    func secret(inFileOf flag: String) throws -> Secret? {
        guard let path = arguments.value(flag) else { return nil }
        return Secret(try contents(of: path).withoutFinalLineFeed())
    }

    /// The password in --password-file, or nil.
    func passwordFromFile() throws -> Secret? { try secret(inFileOf: "password-file") }

    /// The password in --password-file, or else the one that is typed on the terminal.
    func password(_ question: String) throws -> Secret {
        if let password = try passwordFromFile() { return password }
        guard let answer = console.ask(question, true) else {
            throw CommandError.usage(
                "there is no terminal to ask for the password on", hint: "use --password-file FILE")
        }
        return Secret(answer)
    }

    /// The file that --key-out names, opened now, before the key is made. Nil: the key is printed, or no key is made.
    func newKeyFile() throws(CommandError) -> NewFile? {
        guard let path = arguments.value("key-out"), path != "-" else { return nil }
        guard isValidatingOnly else { return try NewFile(path) }
        try NewFile.checkAbsent(path)
        return nil
    }

    /// A file's bytes, or with "-" those of standard input.
    func contents(of path: String) throws -> [UInt8] {
        path == "-" ? try console.readInput() : try File.read(path)
    }

    /// A token: the operand itself, or with "-" standard input.
    func token(operand index: Int) throws -> Text {
        let operand = arguments.operands[index]
        guard operand == "-" else { return Text(operand) }
        guard let text = Text(validating: Array(try console.readInput().trimmed())), !text.isEmpty else {
            throw CommandError("standard input holds no token")
        }
        return text
    }
}

extension [UInt8] {
    /// The bytes without white space at both ends.
    func trimmed() -> ArraySlice<UInt8> {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
        let start = drop(while: isSpace)
        return start.prefix((start.lastIndex { !isSpace($0) } ?? start.startIndex - 1) - start.startIndex + 1)
    }

    func withoutFinalLineFeed() -> [UInt8] {
        var bytes = self[...]
        if bytes.last == 0x0A { bytes.removeLast() }
        if bytes.last == 0x0D, bytes.count < count { bytes.removeLast() }
        return Array(bytes)
    }
}

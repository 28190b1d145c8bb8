import Base
import Glibc
import PosternAuth

/// The input and output of the terminal.
enum Terminal {
    /// Asks for a line. Nil at the end of the input.
    static func ask(_ prompt: String) -> String? {
        print(prompt, terminator: "")
        fflush(nil)
        return readLine()
    }

    /// Asks for a line without showing it.
    static func askSecretly(_ prompt: String) -> String {
        var shown = termios()
        let isTerminal = tcgetattr(STDIN_FILENO, &shown) == 0
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        if isTerminal { tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) }
        defer {
            if isTerminal {
                tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown)
                print()
            }
        }
        return ask(prompt) ?? ""
    }

    /// Prints each event until the task is cancelled. The first event is the state that an earlier run left.
    static func sayWhatHappens(to auth: Auth) -> Task<Void, Never> {
        let events = auth.idTokenEvents
        return Task {
            for await event in events { print("* \(describe(event))") }
        }
    }

    private static func describe(_ event: IDTokenEvent) -> String {
        let name = event.user?.email ?? event.user?.phoneNumber ?? event.user?.uid ?? ""
        return switch event.change {
        case .initialized: event.user == nil ? "nobody is signed in" : "welcome back, \(name)"
        case .signedIn: "signed in as \(name)"
        case .signedOut(nil): "signed out"
        case .signedOut(let error?): "signed out by the server: \(error.message)"
        case .tokenRefreshed(let cause): "new tokens: \(cause)"
        case .profileChanged: "\(name) is now \(event.user?.displayName ?? "nameless")"
        }
    }

    static func explain(_ error: AuthError) {
        print("\(error.code): \(error.message)")
        if let wait = error.retryAfter { print("try again in \(wait.components.seconds) s") }
        if let guidance = error.guidance { print("\(guidance.message) \(guidance.url)") }
    }

    static func readKey(_ path: String) -> Secret? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = fread(&bytes, 1, bytes.count, file)
        return Secret(bytes[..<count].filter { $0 > UInt8(ascii: " ") })
    }
}

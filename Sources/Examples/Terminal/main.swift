// An application in a terminal: signs in, says what happens to the user, and knows the user again after a restart.
//
//   ExampleTerminal SERVER KEY-FILE STATE-FILE [TENANT]
//
// The key needs the role app.

import Base
import Glibc
import PosternAuth
import PosternClient

let arguments = CommandLine.arguments
guard arguments.count >= 4 else {
    print("usage: ExampleTerminal SERVER KEY-FILE STATE-FILE [TENANT]")
    exit(1)
}
guard let key = Terminal.readKey(arguments[2]) else {
    print("ExampleTerminal: \(arguments[2]) cannot be read; it should hold an API key of the role app")
    exit(1)
}

do {
    var configuration = Auth.Configuration(address: arguments[1], credentials: .apiKey(key))
    configuration.tenantID = arguments.count > 4 ? arguments[4] : ""
    configuration.storage = FileStorage(path: arguments[3])
    configuration.deviceName = "example terminal"
    let auth = try Auth(configuration: configuration)
    let listening = Terminal.sayWhatHappens(to: auth)
    defer { listening.cancel() }
    let commands =
        "commands: sign-up EMAIL, sign-in EMAIL, sign-in-phone NUMBER, whoami, token, name TEXT, password, factors, "
        + "add-factor [phone NUMBER], remove-factor ID, recovery-codes, sign-out, delete, help, quit"
    print(commands)
    while let line = Terminal.ask("> "), line != "quit" {
        if line == "help" {
            print(commands)
            continue
        }
        do {
            try await Commands(auth: auth).run(line)
        } catch let error as AuthError {
            Terminal.explain(error)
        }
    }
} catch {
    print("ExampleTerminal: \(error)")
    exit(1)
}

import Base
import Glibc
import JSON
import TestSupport
import Testing

/// What posternd makes of its flags, its file and its environment.
@Suite struct ConfigurationTests {
    /// Runs posternd to its end with these environment variables added; returns its exit status and what it said.
    private static func run(
        _ arguments: [String], variables: [String] = [], in directory: String
    ) throws -> (status: Int32, said: String) {
        let output = "\(directory)/said"
        // timeout(1): a server that serves instead of refusing would never end.
        let process = try ChildProcess(
            "env", variables + ["timeout", "20", ChildProcess.built("posternd")] + arguments, output: output)
        let status = process.wait()
        return (status, String(decoding: readFile(output) ?? [], as: UTF8.self))
    }

    /// The configuration that `--print-config` prints, behind the warnings.
    private static func printed(_ said: String) throws -> JSONValue {
        let start = try #require(said.firstRange(of: "{\n")?.lowerBound)
        return try JSONValue(parsing: [UInt8](said[start...].utf8))
    }

    /// What Kubernetes gives every container beside a service called "postern", and a misspelt setting.
    private static let foreignVariables = [
        "POSTERN_PORT=tcp://10.0.0.1:7400", "POSTERN_SERVICE_HOST=10.0.0.1", "POSTERN_SERVICE_PORT=7400",
        "POSTERN_SERVICE_PORT_RPC=7400", "POSTERN_PORT_7400_TCP=tcp://10.0.0.1:7400", "POSTERN_PORT_7400_TCP_PROTO=tcp",
        "POSTERN_PORT_7400_TCP_PORT=7400", "POSTERN_PORT_7400_TCP_ADDR=10.0.0.1", "POSTERN_HTTP_PORT=tcp://10.0.0.1:1",
        "POSTERN_HTTP_SERVICE_HOST=10.0.0.1", "POSTERN_LISTEN_ADRESS=127.0.0.1:1",
    ]

    @Test func variablesOfOthersAreIgnoredWithAWarning() async throws {
        try withTemporaryDirectory { directory in
            let (status, said) = try Self.run(
                ["--print-config"], variables: Self.foreignVariables + ["POSTERN_PROJECT_ID=mine"], in: directory)
            #expect(status == 0, "\(said)")
            for variable in Self.foreignVariables {
                let name = variable.split(separator: "=")[0]
                #expect(said.contains("\"variable\":\"\(name)\""), "\(name)")
            }
            let configuration = try Self.printed(said)
            #expect(configuration["project_id"] == "mine")
            #expect(configuration["listen_address"] == "127.0.0.1:7400")
        }
    }

    @Test func `There are as many threads as processors on which posternd may run`() throws {
        try withTemporaryDirectory { directory in
            let lines = String(decoding: readFile("/proc/self/status") ?? [], as: UTF8.self).split(separator: "\n")
            let allowed = try #require(lines.first { $0.hasPrefix("Cpus_allowed_list:") })
            let processor = try #require(allowed.split(whereSeparator: { !$0.isNumber }).first)
            // What env(1) is to run: taskset(1), which leaves posternd one processor.
            let taskset = ["taskset", "--cpu-list", String(processor)]
            let (status, said) = try Self.run(["--print-config"], variables: taskset, in: directory)
            #expect(status == 0, "\(said)")
            let configuration = try Self.printed(said)
            #expect(configuration["threads"]?.integer == 1 && configuration["password_workers"]?.integer == 1)
        }
    }

    /// Texts that are no configuration, and what the refusal says.
    private static let wrongFiles: [(text: String, complaint: String)] = [
        ("", "postern.json"), ("{", "postern.json"), ("{} {}", "postern.json"), ("[]", "must hold one JSON object"),
        ("null", "must hold one JSON object"), (#"{"no_setting": 1}"#, "no_setting: no such setting"),
        (#"{"threads": 1, "threads": 1}"#, "postern.json"), (#"{"threads": "1"}"#, "threads: must be a whole number"),
        (#"{"threads": 1.5}"#, "threads: must be a whole number"),
        (#"{"threads": 257}"#, "threads: must be a whole number from 0 to 256"),
        (#"{"threads": -1}"#, "threads: must be a whole number from 0 to 256"),
        (#"{"signing_key_rotation_days": 3651}"#, "signing_key_rotation_days: must be a whole number from 0 to 3650"),
        (#"{"project_id": 7}"#, "project_id: must be a string"),
        (#"{"tls_required": "true"}"#, "tls_required: must be true or false"),
    ]

    @Test func `A file that is no configuration is refused, and the refusal says why`() async throws {
        try withTemporaryDirectory { directory in
            func run(_ text: String) throws -> (status: Int32, said: String) {
                writeFile("\(directory)/postern.json", [UInt8](text.utf8))
                return try Self.run(["--print-config", "--config", "\(directory)/postern.json"], in: directory)
            }
            for (text, complaint) in Self.wrongFiles {
                let (status, said) = try run(text)
                #expect(status == 1 && said.contains(complaint), "\(text): \(said)")
            }
            let most = "{}" + String(repeating: " ", count: (1 << 20) - 2)
            #expect(try run(most).status == 0)
            let large = try run(most + " ")
            #expect(large.status == 1 && large.said.contains("File too large"), "\(large.said)")
            let folder = try Self.run(["--print-config", "--config", directory], in: directory)
            #expect(folder.status == 1 && folder.said.contains("Is a directory"), "\(folder.said)")
        }
    }

    @Test(arguments: ["on", "", "/", "/dev/null", "/nonexistent/calls"])
    func `An access log that cannot be written is refused at the start`(path: String) async throws {
        try withTemporaryDirectory { directory in
            let (status, said) = try Self.run(
                ["--data-directory", "\(directory)/data", "--access-log", path], in: directory)
            #expect(status == 1 && said.contains("access_log"), "\(said)")
        }
    }

    /// Flags that are refused, and what the refusal names.
    private static let refused: [([String], String)] = [
        (["--listen-address", "127.0.0.1:1,"], "listen_address"),
        (["--listen-address", "unix:rpc.sock"], "listen_address"),
        (["--listen-address", many("127.0.0.1:0", 17)], "listen_address"),
        (["--listen-address", "127.0.0.1:1,0.0.0.0:2"], "reachable from other machines"),
        (["--http-address", "unix:/run/http.sock"], "http_address"),
        (["--http-address", "0.0.0.0:9"], "http_address"),
        (["--http-tls", "yes"], "http_tls"), (["--unix-socket-mode", "0888"], "unix_socket_mode"),
        (["--unix-socket-mode", "1777"], "unix_socket_mode"), (["--unix-socket-mode", "-600"], "unix_socket_mode"),
        (["--unix-socket-mode", "60"], "unix_socket_mode"),
        (["--proxy-protocol-from", "proxy"], "proxy_protocol_from"),
        (["--proxy-protocol-from", "10.0.0.0/8,"], "proxy_protocol_from"),
        (["--proxy-protocol-from", "10.0.0.1/8"], "proxy_protocol_from"),
        (["--proxy-protocol-from", many("10.0.0.1", 65)], "proxy_protocol_from"),
        (["--keepalive-seconds", "-1"], "keepalive_seconds"),
    ]

    private static func many(_ text: String, _ count: Int) -> String {
        Array(repeating: text, count: count).joined(separator: ",")
    }

    @Test(arguments: refused)
    func `What cannot be listened on is refused at the start`(flags: [String], complaint: String) async throws {
        try withTemporaryDirectory { directory in
            let (status, said) = try Self.run(["--data-directory", "\(directory)/data"] + flags, in: directory)
            let names = [complaint, "--" + complaint.replacing("_", with: "-")]
            #expect(status == 1 && names.contains { said.contains($0) }, "\(said)")
        }
    }

    @Test func `As many addresses and proxies as there may be are taken`() async throws {
        try withTemporaryDirectory { directory in
            let process = try ChildProcess(
                ChildProcess.built("posternd"),
                [
                    "--data-directory", "\(directory)/data", "--listen-address", Self.many("127.0.0.1:0", 16),
                    "--proxy-protocol-from", Self.many("10.0.0.1", 64), "--http-address", "off",
                    "--signing-algorithm", "ES256",
                ], output: "\(directory)/log")
            defer { process.kill() }
            // The key is made once the server listens.
            _ = try CrashTests.adminKey("\(directory)/data")
        }
    }

    @Test func `An empty variable counts as unset, and an address that no start takes is not printed`() throws {
        try withTemporaryDirectory { directory in
            let empty = ["MAP_BYTES", "LISTEN_ADDRESS", "TLS_REQUIRED", "CONFIG"].map { "POSTERN_\($0)=" }
            let (status, said) = try Self.run(["--print-config"], variables: empty, in: directory)
            #expect(status == 0, "\(said)")
            let printed = try Self.printed(said)
            #expect(printed["listen_address"] == "127.0.0.1:7400" && printed["map_bytes"]?.integer == 64 << 30)
            let refused = try Self.run(["--print-config", "--listen-address", ""], in: directory)
            #expect(refused.status == 1 && refused.said.contains("listen_address"), "\(refused.said)")
        }
    }

    @Test(arguments: [
        (["--print-config", "--config", "a", "--config", "b"], "--config: given twice"),
        (["--print-config", "--threads", "1", "--threads=2"], "--threads: given twice"),
        (["--print-config", "--verify-store"], "--verify-store: cannot be done together"),
        (["--check-backup", "a", "--restore-backup", "a"], "--restore-backup: cannot be done together"),
        (["--accept-rollback=false"], "--accept-rollback: takes no value"),
        (["--print-config", "--accept-clock=false"], "--accept-clock: takes no value"),
    ])
    func `Flags of which only one would count are refused`(flags: [String], complaint: String) async throws {
        try withTemporaryDirectory { directory in
            let (status, said) = try Self.run(["--data-directory", "\(directory)/data"] + flags, in: directory)
            #expect(status == 1 && said.contains(complaint), "\(said)")
        }
    }

    @Test(arguments: [["--help", "--recover-admin"], ["--recover-admin", "--help"]])
    func `The help is shown whatever else is asked for`(flags: [String]) async throws {
        try withTemporaryDirectory { directory in
            let (status, said) = try Self.run(["--data-directory", "\(directory)/data"] + flags, in: directory)
            #expect(status == 0 && said.contains("posternd --recover-admin"), "\(said)")
        }
    }

    @Test func aWrongValueInAVariableOfOursIsStillRefused() async throws {
        try withTemporaryDirectory { directory in
            let (status, said) = try Self.run(["--print-config"], variables: ["POSTERN_THREADS=many"], in: directory)
            #expect(status != 0 && said.contains("POSTERN_THREADS"), "\(said)")
        }
    }

    @Test func whatIsPrintedIsWhatCountsAndGivesTheSameAgain() async throws {
        try withTemporaryDirectory { directory in
            let (status, said) = try Self.run(["--print-config", "--connections-max", "100"], in: directory)
            #expect(status == 0, "\(said)")
            let configuration = try Self.printed(said)
            #expect(configuration["issuer"] == "http://127.0.0.1:7401")
            #expect(configuration["action_url"] == "http://127.0.0.1:7401/action")
            #expect(configuration["master_key_file"] == "postern-data/master-key")
            #expect(configuration["connections_per_address_max"] == 100)
            #expect(configuration["connections_per_caller_max"] == 80)
            // No setting says only "the default", except those that may be off: optional files and other servers.
            let off: Set<Text> = [
                "outbound_ca_file", "backup_directory", "tls_certificate_file", "tls_key_file", "tls_client_ca_file",
                "tls_client_crl_file", "proxy_protocol_from", "journal", "journal_password_file",
            ]
            for member in configuration.object ?? [] where !off.contains(member.name) {
                #expect(member.value != 0 && member.value != "", "\(member.name)")
            }
            writeFile("\(directory)/printed.json", configuration.serialized())
            let again = try Self.run(["--config", "\(directory)/printed.json", "--print-config"], in: directory)
            #expect(try Self.printed(again.said) == configuration)
        }
    }

    @Test(arguments: [
        (["--http-address", "127.0.0.1:9"], "http://127.0.0.1:9"), (["--http-address", "[::1]:9"], "http://[::1]:9"),
        (["--http-address", "0.0.0.0:9"], "http://127.0.0.1:9"), (["--http-address", "[::]:9"], "http://[::1]:9"),
        (["--http-address", "10.1.2.3:9"], "http://10.1.2.3:9"),
        (["--http-address", "off", "--project-id", "p"], "https://postern.local/p"),
        (["--http-address", "127.0.0.1:0"], "https://postern.local/postern"),
        (["--issuer", "https://auth.example"], "https://auth.example"),
    ])
    func theIssuerIsTheHTTPPortUnlessItIsSet(_ flags: [String], _ issuer: String) async throws {
        try withTemporaryDirectory { directory in
            let (_, said) = try Self.run(["--print-config", "--allow-plaintext"] + flags, in: directory)
            #expect(try Self.printed(said)["issuer"]?.string == issuer, "\(said)")
        }
    }

    @Test func theDefaultIssuerLeadsToTheKeysOnThisMachine() async throws {
        try withTemporaryDirectory { directory in
            let (port, httpPort) = (try CrashTests.freePort(), try CrashTests.freePort())
            let server = try CrashTests.start(directory, port, httpPort: httpPort)
            defer { server.kill() }
            _ = try CrashTests.adminKey(directory)
            let (status, said) = try Self.run(
                ["--print-config", "--http-address", "127.0.0.1:\(httpPort)"], in: directory)
            #expect(status == 0, "\(said)")
            let issuer = try #require(try Self.printed(said)["issuer"]?.string)
            let discovery = try Self.fetch("\(issuer)/.well-known/openid-configuration", in: directory)
            #expect(discovery["issuer"]?.string == issuer)
            let keys = try Self.fetch(try #require(discovery["jwks_uri"]?.string), in: directory)
            #expect(keys["keys"]?.array?.isEmpty == false, "\(keys)")
        }
    }

    @Test(
        arguments: [
            ([], 83), (["--signing-key-rotation-days", "2"], 1), (["--signing-key-rotation-days", "0"], nil),
        ] as [([String], Int?)])
    func theServerReplacesItsSigningKeysUnlessItMayNot(_ settings: [String], _ days: Int?) async throws {
        try withTemporaryDirectory { directory in
            let (port, httpPort) = (try CrashTests.freePort(), try CrashTests.freePort())
            let server = try CrashTests.start(directory, port, httpPort: httpPort, settings: settings)
            defer { server.kill() }
            _ = try CrashTests.adminKey(directory)
            let output = "\(directory)/metrics"
            let url = "http://127.0.0.1:\(httpPort)/metrics"
            let curl = try ChildProcess("curl", ["-fsS", "--max-time", "20", url], output: output)
            #expect(curl.wait() == 0)
            let lines = String(decoding: readFile(output) ?? [], as: UTF8.self).split(separator: "\n")
            let found = lines.filter { $0.hasPrefix("postern_signing_key_rotation_timestamp_seconds{") }
            let times = found.compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
            #expect(times.count == 2)
            for time in times {
                guard let days else {
                    #expect(time == 0)
                    continue
                }
                // The keys are as old as the server: less than half a day.
                let left = (time - Double(Clock.system.now().seconds)) / 86_400
                #expect(left > Double(days) - 0.5 && left < Double(days) + 0.1)
            }
        }
    }

    private static func fetch(_ url: String, in directory: String) throws -> JSONValue {
        let output = "\(directory)/fetched"
        let curl = try ChildProcess("curl", ["-fsS", "--max-time", "20", url], output: output)
        #expect(curl.wait() == 0, "\(url)")
        return try JSONValue(parsing: readFile(output) ?? [])
    }
}

import Base
import TestSupport
import Testing

@testable import postern

/// Which server, tenant and key a command uses, whatever flags, contexts and environment say together.
@Suite struct DestinationTests {
    /// The values that were given in each place; nil: none.
    private struct Case {
        var flagServer: String?
        var flagTenant: String?
        var flagKey: String?
        var named: String?
        var environmentServer: String?
        var environmentTenant: String?
        var environmentKey: String?
        var current: String?
        var productionServer: String?

        func destination() throws(CommandError) -> Destination {
            var contexts = try ContextFile(environment: ["HOME": "/nonexistent"])
            for context in DestinationTests.contexts { contexts.put(context) }
            contexts.use(current)
            if let productionServer {
                contexts.put(
                    .init(name: "mark", server: productionServer, tenant: "m", apiKeyFile: "m", isProduction: true))
            }
            var arguments = Arguments()
            arguments.values["server"] = flagServer
            arguments.values["tenant"] = flagTenant
            arguments.values["key-file"] = flagKey
            arguments.values["context"] = named
            // A key that a posternd in the current directory left does not count here.
            var environment = ["POSTERN_DATA_DIRECTORY": "/nonexistent"]
            environment["POSTERN_SERVER"] = environmentServer
            environment["POSTERN_TENANT"] = environmentTenant
            environment["POSTERN_KEY_FILE"] = environmentKey
            return try Destination(arguments, environment: environment, contexts: contexts)
        }
    }

    private static let contexts: [ContextFile.Context] = [
        .init(name: "one", server: "one:1", tenant: "t1", apiKeyFile: "k1"),
        .init(name: "two", server: "two:1", tenant: "t2", apiKeyFile: "k2"),
        .init(name: "bare", server: "two:1", tenant: "", apiKeyFile: ""),
    ]

    private static var cases: [Case] {
        var cases = [Case()]
        func vary(_ field: WritableKeyPath<Case, String?>, _ values: [String?]) {
            cases = cases.flatMap { base in
                values.map { value in
                    var varied = base
                    varied[keyPath: field] = value
                    return varied
                }
            }
        }
        vary(\.flagServer, [nil, "flag:1", "two:1"])
        vary(\.flagTenant, [nil, "", "tf"])
        vary(\.flagKey, [nil, "kf"])
        vary(\.named, [nil, "two", "bare"])
        vary(\.environmentServer, [nil, "env:1", "one:1", "two:1"])
        vary(\.environmentTenant, [nil, "", "te"])
        vary(\.environmentKey, [nil, "ke"])
        vary(\.current, [nil, "one", "bare"])
        vary(\.productionServer, [nil, "ONE:1", "two:1", "flag:1"])
        return cases
    }

    @Test func `Flag, named context, environment, current context: in this order, and never of two servers`() throws {
        let cases = Self.cases
        #expect(cases.count == 15_552)
        for one in cases {
            let named = Self.contexts.first { $0.name == one.named }
            let current = named == nil ? Self.contexts.first { $0.name == one.current } : nil
            if let named, let flag = one.flagServer, flag != named.server {
                #expect(throws: CommandError.self, "\(one)") { try one.destination() }
                continue
            }
            let found = try one.destination()
            let server =
                one.flagServer ?? named?.server ?? one.environmentServer ?? current?.server ?? "127.0.0.1:7400"
            #expect(found.server == server, "\(one)")
            // Each value belongs to a place, and the place belongs to this server, or to none.
            let isEnvironmentUsable = one.environmentServer ?? server == server
            let tenants = [
                one.flagTenant, named?.tenant, isEnvironmentUsable ? one.environmentTenant : nil,
                current?.server == server ? current?.tenant : nil,
            ]
            #expect(found.tenant == tenants.compactMap(\.self).first ?? "", "\(one)")
            let keys = [
                one.flagKey, named?.apiKeyFile, isEnvironmentUsable ? one.environmentKey : nil,
                current?.server == server ? current?.apiKeyFile : nil,
            ]
            let key = keys.compactMap(\.self).first { !$0.isEmpty }
            #expect(found.keyFile == key, "\(one)")
            #expect(key == nil || found.unusedKey == nil, "\(one)")
            let isProduction = one.productionServer?.lowercased() == server
            #expect((found.productionContext == "mark") == isProduction, "\(one)")
        }
    }

    @Test func `A server that is marked as production is found in every spelling, and in a list`() throws {
        func isMarked(_ server: String, by mark: String) throws -> Bool {
            try Case(flagServer: server, productionServer: mark).destination().productionContext == "mark"
        }
        for (mark, servers) in [
            ("a:7400", ["a:7400", "A:7400", " a:7400", "a:07400", "a:7400,b:1", "b:1,a:7400", "b:1, a:7400"]),
            ("a:7400,b:7400", ["b:7400,a:7400", "b:7400", "a:7400, b:7400", "c:1,b:7400"]),
            ("[::1]:1", ["[0:0:0:0:0:0:0:1]:1"]),
            (
                "127.0.0.1:1",
                [
                    "localhost:1", "unix:/a,LocalHost:1", "[::ffff:127.0.0.1]:1", "[::FFFF:7f00:1]:1", "127.1:1",
                    "0x7f000001:1", "2130706433:1",
                ]
            ),
            ("[::ffff:192.0.2.1]:1", ["192.0.2.1:1", "[0:0:0:0:0:ffff:c000:201]:01"]),
            ("unix:/A", ["unix:/A", "c:1,unix:/A"]),
        ] {
            for server in servers { #expect(try isMarked(server, by: mark), "\(server), \(mark)") }
        }
        for (mark, server) in [
            ("a:7400", "a:7401"), ("a:7400", "aa:7400"), ("a:7400", "unix:/a:7400"), ("a:7400", "a"),
            ("unix:/A", "unix:/a"), ("a:1,b:2", "a:2,b:1"), ("127.0.0.1:1", "127.1.evil.example:1"),
            ("127.0.0.1:1", "1.localhost:1"), ("192.0.2.1:1", "[::192.0.2.1]:1"), ("[fe80::1%1]:1", "[fe80::1%2]:1"),
        ] {
            #expect(try !isMarked(server, by: mark), "\(server), \(mark)")
        }
    }

    @Test func `A list in another order is the same server, and a part of it is not`() throws {
        func key(_ server: String) throws -> String? {
            try Case(flagServer: server, environmentServer: "a:1, b:2", environmentKey: "ke").destination().keyFile
        }
        for server in ["a:1,b:2", "b:2,a:1", "B:2, A:1"] { #expect(try key(server) == "ke", "\(server)") }
        for server in ["a:1", "a:1,b:2,c:3", "a:2,b:1"] { #expect(try key(server) == nil, "\(server)") }
    }

    @Test func `A key that is of another server is not used, and that is said`() throws {
        let mixed = try Case(flagServer: "flag:1", environmentServer: "env:1", environmentKey: "ke").destination()
        let paths = try Case(flagServer: "unix:/A", environmentServer: "unix:/a", environmentKey: "ke").destination()
        #expect(paths.keyFile == nil, "upper and lower case are two paths")
        #expect(mixed.keyFile == nil && mixed.unusedKey == "ke was set for env:1 (POSTERN_SERVER)")
    }

    @Test func `A tenant that is of another server is not used, and that is said`() throws {
        func destination(_ flagTenant: String?) throws -> Destination {
            try Case(flagServer: "flag:1", flagTenant: flagTenant, environmentServer: "env:1", environmentTenant: "te")
                .destination()
        }
        let mixed = try destination(nil)
        #expect(mixed.tenant.isEmpty)
        let unused = "; not used: tenant te was set for env:1 (POSTERN_SERVER)"
        let pool = "the default pool or the key's own tenant (none was named)"
        #expect(mixed.description(of: .usualTenant) == "on flag:1 (--server), \(pool)\(unused)")
        #expect(try destination("").description(of: .usualTenant) == "on flag:1 (--server), \(pool)")
        #expect(try destination("tf").description(of: .usualTenant) == "on flag:1 (--server), tenant tf")
        #expect(mixed.description(of: .named("tenant x")) == "on flag:1 (--server), tenant x")
        #expect(mixed.description(of: .project) == "on flag:1 (--server)")
        for named in ["", "tf"] { #expect(try destination(named).unusedTenant == nil) }
    }

    @Test func `The admin key of a posternd that was started here is found, and stays on this machine`() throws {
        try withTemporaryDirectory { directory in
            writeFile("\(directory)/admin-key", [UInt8]("pk_a_b\n".utf8))
            let contexts = try ContextFile(environment: ["HOME": "/nonexistent"])
            let environment = ["POSTERN_DATA_DIRECTORY": directory]
            func keyFile(_ server: String?) throws -> String? {
                var arguments = Arguments()
                arguments.values["server"] = server
                return try Destination(arguments, environment: environment, contexts: contexts).keyFile
            }
            for here in [
                nil, "127.0.0.1:7400", "127.1.2.3:1", "localhost:1", "[::1]:1", "unix:/run/a", "unix:/a, [::1]:1",
            ] {
                #expect(try keyFile(here) == "\(directory)/admin-key", "\(here ?? "")")
            }
            for elsewhere in [
                "auth.internal:7400", "10.0.0.1:7400", "[::2]:1", "localhost.evil.example:1",
                "127.0.0.1.evil.example:1", "unix:/a,10.0.0.1:1", "127.0.0.1:1,auth.internal:1",
            ] {
                #expect(try keyFile(elsewhere) == nil, "\(elsewhere)")
            }
        }
    }

    @Test func `POSTERN_TLS is true or false, and anything else is refused instead of meaning plain text`() throws {
        let contexts = try ContextFile(environment: ["HOME": "/nonexistent"])
        func tls(_ value: String?, caFile: String = "") throws -> Bool {
            var environment = ["POSTERN_DATA_DIRECTORY": "/nonexistent", "POSTERN_CA_FILE": caFile]
            environment["POSTERN_TLS"] = value
            return try Destination(Arguments(), environment: environment, contexts: contexts).tls != nil
        }
        for plain in [nil, "", "false"] { #expect(try !tls(plain), "\(plain ?? "nil")") }
        #expect(try tls("true"))
        #expect(try tls("false", caFile: "/ca.pem"), "the file of authorities asks for TLS by itself")
        for wrong in ["1", "0", "TRUE", "True", "yes", "on", " true", "true "] {
            let error = #expect(throws: CommandError.self) { try tls(wrong) }
            #expect(error?.exitCode == .usage && error?.message == "POSTERN_TLS is true or false, not \"\(wrong)\"")
        }
    }

    @Test func `The key is looked for where posternd writes it`() throws {
        try withTemporaryDirectory { directory in
            let output = "\(directory)/said"
            let process = try ChildProcess(ChildProcess.built("posternd"), ["--print-config"], output: output)
            #expect(process.wait() == 0)
            let said = String(decoding: readFile(output) ?? [], as: UTF8.self)
            #expect(said.contains("\"data_directory\": \"\(Destination.defaultDataDirectory)\""), "\(said)")
            #expect(GlobalFlags.all.contains { $0.help.contains("./\(Destination.defaultDataDirectory)/admin-key") })
        }
    }
}

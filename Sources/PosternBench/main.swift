import Base
import Glibc

let help = """
    postern-bench: load for a Postern server, and what it costs there.

      postern-bench seed --key-file F --state S [--users N] [--password-users N] [--sessions N] [--tenant T]
                         [--hashes synthetic|production]
          makes a tenant with users, passwords and sessions; S remembers them for `run`
      postern-bench run --key-file F --state S --mix get=70,verify=20,refresh=10 [--connections N] [--in-flight N]
                        [--seconds N] [--warmup N] [--threads N] [--seed N] [--repeat-tokens N] [--idp-users N]
                        [-o table|json]
          closed loop: an answer is followed by the next request. Operations: get, get-by-email, lookup, verify,
          refresh, sign-in, create, sign-up, idp, health; idp brings its own identity provider on 127.0.0.1
      postern-bench idle --key-file F [--connections N] [--stream none|revocations|auth-state --state S]
                        [-o table|json]
          what an idle connection costs the server, or one that waits for news
      postern-bench revocation --key-file F --state S [--verifiers N] [--verifications PER-SECOND] [--revocations N]
                        [-o table|json]
          how soon verifiers know of a revocation, and what a verifier's stream costs the server
      postern-bench providers --key-file F [--tenants N] [--per-tenant N] [-o table|json]
          what identity providers of many tenants cost the server's memory
      postern-bench hostile --key-file F [--http HOST:PORT] [--seconds N] [--connections N] [--rate PER-SECOND]
                        [--p99-max MILLISECONDS] [-o table|json]
          open loop of one tenant while another tenant's app, its admin and connections from outside do their worst;
          98 when a request of the first failed or was slow. Makes two tenants and leaves them
      postern-bench allocations [--check FILE]
          allocations of the codec's paths, in this process; run it by tools/allocations/run

    With each but the last: [--server 127.0.0.1:7400] [--server-pid N] (else found by the port, on this machine).
    Exit status: 1 usage, 2 not reachable or not seeded, 3 the run failed, 98 above a threshold, 130 interrupted.

    """

func runCommand() throws {
    var words = CommandLine.arguments.dropFirst()
    guard let command = words.popFirst(), !["help", "--help", "-h"].contains(command), !words.contains("--help") else {
        return try TextFile.printOut(help)
    }
    var arguments = try Arguments(words)
    switch command {
    case "run": try RunCommand(&arguments).run()
    case "seed": try SeedCommand(&arguments).run()
    case "revocation": try RevocationCommand(&arguments).run()
    case "providers": try ProvidersCommand(&arguments).run()
    case "hostile": try HostileCommand(&arguments).run()
    case "idle": try IdleCommand(&arguments).run()
    case "allocations": try AllocationsCommand(&arguments).run()
    default: throw UsageError("\(command): no such command; see postern-bench --help")
    }
}

do {
    try runCommand()
} catch let error as UsageError {
    TextFile.printError("postern-bench: \(error)\n")
    exit(1)
} catch let error as BenchError {
    TextFile.printError("postern-bench: \(error)\n")
    exit(error.kind.rawValue)
} catch {
    TextFile.printError("postern-bench: \(error)\n")
    exit(BenchError.Kind.failed.rawValue)
}

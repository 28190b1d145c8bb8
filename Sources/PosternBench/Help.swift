/// The text of `postern-bench --help`. A test compares it with the commands: every flag with its default.
enum Help {
    static let text = """
        postern-bench: load for a Postern server, and what it costs there. docs/bench.md explains the figures.

        """ + sections.map { "\($0.text)\n" }.joined() + """

            Exit status: 1 usage, 2 not reachable or not seeded, 3 the run failed or answers did, 98 above a threshold,
            99 an objective was missed, 130 interrupted; results are written in each case but 1 and 2.

            """

    /// The part of each command. `common` has the flags of commands with a server, `load` those of commands with a
    /// load.
    static let sections: [(name: String, text: String)] = [
        (
            "seed",
            """
              postern-bench seed --key-file F --state S [flags]
                  makes tenants with users, passwords and sessions; S remembers them for the other commands. Run
                  again it goes on where it was cut short, or begins the sessions anew
                  --tenant T             the tenant to make (bench)
                  --tenants N            as many, T-00000 and so on; users and load are spread by Zipf's law (1)
                  --zipf E               its exponent: 0 makes all tenants alike (1)
                  --seed N               of the random choices of runs with S (1)
                  --users N              users without a password (10000)
                  --password-users N     users with one, for sign-in (100)
                  --sessions N           sessions, for verify, lookup and refresh (1000)
                  --hashes H             production, or synthetic: cheap hashes, no throttling (production)
                  --i-own-this           the tenant may have users that this tool did not make (refuse it)
            """
        ),
        (
            "run",
            """
              postern-bench run --key-file F --mix get=70,verify=20,refresh=10 [flags]
                  closed loop: an answer is followed by the next request. With --rate an open loop: each request is
                  due at its time whether the server keeps up or not, and its latency begins then. Operations: get,
                  get-by-email, lookup, verify, refresh, sign-in, create, sign-up, idp, health; idp brings its own
                  identity provider on 127.0.0.1
                  --in-flight N          requests under way on each connection of a closed loop (1)
                  --think-ms N           between an answer and the next request of a closed loop (0)
                  --rate R               of an open loop: a number of requests a second, or a schedule (a closed loop):
                                         'step 1000..10000 by 1000 every 20s', 'line 100..5000 over 60s',
                                         'burst 5000 for 2s every 10s over 500'
                  --arrivals A           poisson, as of many users, or uniform (poisson)
                  --max-outstanding N    requests of an open loop under way at once (32 for each connection)
                  --when-full W          what is due then: queue, and wait, or skip, and never be sent (queue)
                  --seconds N            that count (5; of steps and lines: their length)
                  --warmup N             seconds before, at the first rate (1)
                  --slo OBJECTIVES       99 if one is missed (none): 'sign-in.p99<50ms,error_rate<0.1%', also
                                         service.p50, lag.p99, mean, max, rate>N, achieved_rate>99%
                  --failures-max PERCENT of the answers may fail; error_rate takes its place (0)
            """
        ),
        (
            "saturate",
            """
              postern-bench saturate --key-file F --mix M --slo 'p99<50ms' [flags]
                  the highest rate at which the objectives hold, 97 % of it is achieved and, without an error_rate
                  among them, nothing fails: doubles the rate until it fails, then searches in between
                  --from N               requests a second to begin with (100)
                  --precision PERCENT    of the rate, at which the search ends (5)
                  --step-seconds N       that count at each rate (5)
                  --warmup N             seconds before each of them (1)
                  --max-outstanding N    requests under way at once (32 for each connection)
            """
        ),
        (
            "replay",
            """
              postern-bench replay TRACE --key-file F --state S [flags]
                  the requests of a trace, or of posternd's access log, each when it was recorded; docs/bench.md has
                  the format
                  --speed X              2 is in half the time (1)
                  --max-outstanding N    requests under way at once (32 for each connection)
                  --when-full W          what is due then: queue, and wait, or skip, and never be sent (queue)
                  --slo OBJECTIVES       as with run (none)
                  --failures-max PERCENT of the answers may fail (0)
            """
        ),
        (
            "cost",
            """
              postern-bench cost --key-file F --mix get=1,verify=1 [flags]
                  the server's CPU time for one request of each operation, each run alone in a closed loop
                  --allocations-file F   count its allocations as well: docs/bench.md says how to start it (none)
                  --in-flight N          requests under way on each connection (1)
                  --seconds N            for each operation (2)
            """
        ),
        (
            "load",
            """

                With run, saturate, replay and cost:
                  --mix M                operations and their weights; replay has them from its trace
                  --scenario S           what users do step by step, instead of a mix: token-traffic, morning-login,
                                         sign-up-wave, mixed-day, or a file (a mix); docs/bench.md has its format
                  --state S              what was seeded; create, sign-up, idp and health do without
                  --tenant T             the tenant without a state file (bench)
                  --i-own-this           the tenant may be one that is not marked as synthetic (refuse it)
                  --connections N        (8)
                  --threads N            of this program (1)
                  --seed N               of the order of requests and of their times (1)
                  --transport T          native frames, or grpc: the same calls over HTTP/2 (native)
                  --repeat-tokens N      use so many ID tokens only (all of the state file)
                  --idp-users N          users of the identity provider (4000)
                  --progress P           on: a line a second on stderr; off (on)
                  -o table|json          (table)

                With run, saturate and replay:
                  --json FILE            write the result, as -o json prints it (none)
                  --hdr FILE             write histograms in HdrHistogram's log format (none)
                  --csv FILE             write the figures of each second (none)

            """
        ),
        (
            "compare",
            """
              postern-bench compare BEFORE AFTER [flags]
                  whether a server got slower between two results of --json, or two groups of them with commas
                  between: 98 when a figure is worse by more than the threshold and than the noise of the figures
                  --threshold PERCENT    (5)
                  --markdown             a table for a comment (for a terminal)
            """
        ),
        (
            "report",
            """
              postern-bench report RESULT... --html FILE
                  one HTML file with tables and plots, to be read without a network; results of several load tools that
                  ran at once are added up
            """
        ),
        (
            "conns",
            """
              postern-bench conns --key-file F [flags]
                  what an idle connection costs the server, or one that waits for news, and how fast it takes new ones
                  --connections N        (1000)
                  --threads N            open connections at the same time, each one after the other (1)
                  --stream S             none, revocations or auth-state, which need --state (none)
                  --state S              what was seeded
                  --quiet-seconds N      before the memory of streams is measured (7)
                  -o table|json          (table)
            """
        ),
        (
            "revocation",
            """
              postern-bench revocation --key-file F --state S [flags]
                  how soon verifiers know of a revocation, and what a verifier's stream costs the server
                  --verifiers N          streams that wait (1000)
                  --verifications N      a second, meanwhile (10000)
                  --revocations N        one after the other (100)
                  --quiet-seconds N      before the memory of streams is measured (7)
                  -o table|json          (table)
            """
        ),
        (
            "providers",
            """
              postern-bench providers --key-file F [flags]
                  what identity providers of many tenants cost the server's memory; no passwords are hashed
                  --tenants N            (1000)
                  --per-tenant N         providers of each (3)
                  -o table|json          (table)
            """
        ),
        (
            "users",
            """
              postern-bench users --key-file F [flags]
                  imports users with password hashes, each with an email, a phone number and a provider's identity;
                  then asks for them one after the other by every index. A second run finds them there
                  --tenant T             the tenant to make (bench-users)
                  --users N              (1000000)
                  --lookups N            by each index (2000)
                  --seed N               of the order of lookups (1)
                  --i-own-this           the tenant may have users that this tool did not make (refuse it)
                  -o table|json          (table)
            """
        ),
        (
            "tenants",
            """
              postern-bench tenants --key-file F [flags]
                  makes tenants with settings, reads each, and says what they cost the server's memory
                  --tenants N            (100000)
                  -o table|json          (table)
            """
        ),
        (
            "start",
            """
              postern-bench start --key-file F --data-directory D [flags]
                  starts and stops a server over a data directory as it is, and says how soon it answers; no server
                  may be running there
                  --program P            (posternd)
                  --starts N             (5)
                  -o table|json          (table)
            """
        ),
        (
            "hostile",
            """
              postern-bench hostile --key-file F [flags]
                  open loop of one tenant while another tenant's app, its admin and connections from outside do their
                  worst; 98 when a request of the first failed or was slow. Makes two tenants and leaves them
                  --http HOST:PORT       attack the HTTP port, too (not)
                  --seconds N            (60)
                  --connections N        without a credential (1000)
                  --rate N               the first tenant's requests a second (50)
                  --p99-max N            milliseconds (250)
                  --attack TEXT,…        only the attacks with one of these in their names (all)
                  -o table|json          (table)
            """
        ),
        (
            "allocations",
            """
              postern-bench allocations [--check FILE]
                  allocations of the codec's paths, in this process; run it by tools/allocations/run
                  --check FILE           of thresholds: 98 when one does not hold (print only)
            """
        ),
        (
            "common",
            """

                With each but compare, report and allocations:
                  --key-file F           holds an API key; where posternd runs here: postern-data/admin-key
                  --server HOST:PORT     (127.0.0.1:7400)
                  --ca-file F            speak TLS; F has the certificates to trust (none: plain text)
                  --certificate-file F   shown to a server that asks for a client's certificate (none)
                  --certificate-key-file F  its private key (none)
                  --silence-max N        seconds that a server may take no connection, or say nothing to a call (30)
                  --server-pid N         whose CPU time and memory count (on this machine root finds it by the port)
            """
        ),
    ]
}

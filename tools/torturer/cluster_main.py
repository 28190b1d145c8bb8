"""tools/cluster start, torture, bench and joining."""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from torturer import cluster_bench, cluster_joining, cluster_self_test, rounds  # noqa: E402
from torturer.cluster import Cluster  # noqa: E402
from torturer.cluster_round import ClusterRound  # noqa: E402
from torturer.server import build_shim  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(prog="tools/cluster")
    actions = parser.add_subparsers(dest="action", required=True)
    names = ("start", "torture", "bench", "joining")
    start, torture, bench, joining = (actions.add_parser(name) for name in names)
    joining.add_argument("--users", type=int, default=1_000_000, help="that the cluster has (1000000)")
    start.add_argument("--nodes", type=int, default=3, choices=range(1, 8))
    start.add_argument("--minutes", type=float, default=60, help="stops by itself after these (60)")
    length = torture.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=0)
    length.add_argument("--seconds", type=float, default=0)
    length.add_argument("--rounds", type=int, default=0, help="so many rounds instead of a time")
    torture.add_argument("--phases", type=int, default=20, help="per round (20)")
    torture.add_argument("--seed", type=int, help="of the first round; the next ones count on (random)")
    torture.add_argument("--without", default="", help="faults to leave out, by their names in the summary: a,b,…")
    torture.add_argument("--self-test", action="store_true", help="plants bugs, and sees whether they are found")
    torture.add_argument("--only", help="with --self-test: this bug alone, by the name of its file")
    torture.add_argument("--verbose", action="store_true")
    torture.add_argument("--directory", type=Path, help="where stores are made (default: a new temporary directory)")
    for each in (start, torture, bench, joining):
        each.add_argument("--posternd", type=Path, help="the program (default: a release build of this checkout)")
    return parser.parse_args()


def start(options, folder):
    """Runs nodes until somebody presses Ctrl-C, or the time is over."""
    cluster = Cluster(options.posternd, build_shim(folder), folder / "cluster", options.nodes)
    try:
        cluster.begin()
        for node in cluster.nodes:
            print(f"node {node.number}: {node.address}, http://127.0.0.1:{node.http_port}, data in {node.data}")
        print(f"key: {cluster.nodes[0].data}/admin-key; ends with Ctrl-C, or after {options.minutes:g} minutes", flush=True)
        time.sleep(options.minutes * 60)
    except KeyboardInterrupt:
        pass
    finally:
        cluster.close()
    return 0


def main():
    options = parse()
    if getattr(options, "self_test", False):
        sys.exit(cluster_self_test.run(options.only))
    options.posternd = (options.posternd or rounds.release_build()).resolve()
    folder = Path(tempfile.mkdtemp(prefix="cluster.", dir=getattr(options, "directory", None)))
    try:
        if options.action == "start":
            sys.exit(start(options, folder))
        if options.action == "bench":
            sys.exit(cluster_bench.run(options, folder))
        if options.action == "joining":
            sys.exit(cluster_joining.run(options, folder))
        options.shim, options.without = build_shim(folder), options.without.split(",")
        sys.exit(rounds.run(ClusterRound, options, folder, "tools/cluster torture"))
    except KeyboardInterrupt:
        sys.exit("cluster: ended from outside")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("cluster: ended from outside"))
    main()

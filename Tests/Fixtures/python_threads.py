#!/usr/bin/env python3
"""Uses postern_client.py as a module, from eight threads over one connection: each must get its own answers.

    python_threads.py FOLDER ADDRESS KEY-FILE      FOLDER holds postern_client.py
"""
import sys
import threading
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import postern_client  # noqa: E402

THREADS, CALLS = 8, 40
connection = postern_client.Connection(sys.argv[2], Path(sys.argv[3]).read_text().strip())
# A stream that is open meanwhile, which nobody reads.
feed = connection.watch("postern.v1.Tokens/WatchRevocations", any_tenant=True, heartbeat_seconds=10)
right, faults = [0] * THREADS, []


def work(number):
    try:
        for index in range(CALLS):
            email = f"t{number}n{index}@example.com"
            uid = connection.call("postern.v1.Users/Create", timeout=60, email=email).user.uid
            found = connection.call("postern.v1.Users/Get", timeout=60, uid=uid).user
            right[number] += found.email == email
            try:
                connection.call("postern.v1.Users/Get", timeout=60, uid=f"none-{email}")
            except postern_client.CallFailed as failure:
                right[number] += failure.reason == "USER_NOT_FOUND"
    except Exception as error:
        faults.append(f"thread {number}: {type(error).__name__}: {error}")


threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
batch = feed.read(60)
print(*faults, sep="\n")
print(f"right: {sum(right)} of {THREADS * CALLS * 2}, the stream: {batch is not None}")

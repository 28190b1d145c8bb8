#!/usr/bin/env python3
"""Many threads that share one client and one verifier: `grpc_threads.py 127.0.0.1:7400 KEY-FILE`.

Needs the package in tools/python, and a key of the role tenant-admin. The users are of the key's tenant, or of the
default pool if the key is for all tenants, and so are the tokens that the verifier accepts. Each thread makes a user, whose token is verified here without a call. Then the
user's tokens are revoked, and the verifier refuses the token as soon as it hears of the revocation.
"""
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import postern


def visit(client, verifier, number):
    name = f"visit-{number}-{time.time_ns()}"
    signed_up = client.accounts.sign_up(
        email=f"{name}@example.com", password="correct horse battery", timeout=30, idempotency_key=name)
    token = verifier.verify(signed_up.tokens.id_token)
    assert token.uid == signed_up.user.uid and token.sign_in_provider == "password"
    client.users.revoke_tokens(uid=token.uid)
    for _ in range(1_000):
        try:
            verifier.verify_now(signed_up.tokens.id_token)
        except postern.PosternError as error:
            return f"{error.reason} {error.metadata['cause']}"
        time.sleep(0.01)
    return "still accepted"


def main():
    address, key_file = sys.argv[1:]
    with postern.Client(address, api_key=Path(key_file).read_text().strip()) as client:
        with postern.TokenVerifier(client) as verifier, ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(lambda number: visit(client, verifier, number), range(32)))
        for outcome in sorted(set(outcomes)):
            print(f"{outcomes.count(outcome)} users: {outcome}")


main()

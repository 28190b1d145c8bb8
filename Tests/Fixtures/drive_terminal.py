"""Drives a program in a terminal: python3 drive_terminal.py STEPS PROGRAM [ARGUMENT ...]

STEPS is a file of JSON lines, each of them one of
  {"expect": TEXT}                     waits until the program has shown TEXT
  {"type": LINE}
  {"type-what-followed": TEXT}         types the word that was shown behind TEXT, where it was shown last
  {"type-totp": TEXT, "at": SECONDS}   types oathtool's code of the base32 secret behind TEXT, at a time since 1970
What was shown is printed at the end; the status is the program's, or 1 when something expected did not come within 30 seconds.
"""
import json
import os
import pty
import select
import subprocess
import sys
import time


def totp(secret, seconds):
    line = ["oathtool", "--totp", "--base32", f"--now=@{seconds}", secret]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        steps = [json.loads(line) for line in file]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.argv[2], sys.argv[2:])
    shown, seen = "", 0

    def read(seconds):
        nonlocal shown
        if not select.select([terminal], [], [], seconds)[0]:
            return True
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the program ended
            return False
        shown += data.decode("utf-8", "replace")
        return bool(data)

    def followed(text):
        return shown.rpartition(text)[2].split()[0]

    failed = None
    for step in steps:
        if "expect" not in step:
            line = step.get("type")
            if "type-what-followed" in step:
                line = followed(step["type-what-followed"])
            elif "type-totp" in step:
                line = totp(followed(step["type-totp"]), step["at"])
            os.write(terminal, (line + "\n").encode())
            continue
        deadline = time.monotonic() + 30
        while step["expect"] not in shown[seen:] and not failed:
            if not read(0.2) or time.monotonic() > deadline:
                failed = step["expect"]
        if failed:
            break
        seen = shown.index(step["expect"], seen) + len(step["expect"])
    while not failed and read(5):
        pass
    print(shown.replace("\r\n", "\n"))
    if failed:
        print(f"NOT SHOWN: {failed}")
        os.kill(pid, 9)
    status = os.waitpid(pid, 0)[1]
    sys.exit(1 if failed else os.waitstatus_to_exitcode(status))


main()

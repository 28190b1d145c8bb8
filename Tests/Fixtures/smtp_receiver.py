"""A mail server for tests: takes mail on 127.0.0.1 and writes what it read of each, one JSON object a line.

usage: smtp_receiver.py PORT FILE [CODE]     with CODE every recipient is refused by it
"""
import asyncio
import email
import email.policy
import json
import sys

from aiosmtpd.smtp import SMTP


class Handler:
    def __init__(self, path, code):
        self.path, self.code = path, code

    async def handle_RCPT(self, server, session, envelope, address, options):
        if self.code:
            return f"{self.code} refused by the test"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.original_content, policy=email.policy.default)
        longest = max(len(line) for line in envelope.original_content.split(b"\r\n"))
        record = {
            "from": envelope.mail_from, "to": envelope.rcpt_tos, "subject": mail["Subject"], "sender": mail["From"],
            "message_id": mail["Message-ID"], "date": mail["Date"].datetime.isoformat(), "longest_line": longest,
            "text": mail.get_body(("plain",)).get_content(), "html": mail.get_body(("html",)).get_content(),
        }
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        return "250 OK"


async def main():
    port, path = int(sys.argv[1]), sys.argv[2]
    handler = Handler(path, sys.argv[3] if len(sys.argv) > 3 else "")
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(handler, enable_SMTPUTF8=False), "127.0.0.1", port)
    # A test that dies must not leave its mail server behind.
    await asyncio.sleep(120)
    server.close()


asyncio.run(main())

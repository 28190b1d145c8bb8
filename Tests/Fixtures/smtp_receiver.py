"""A mail server for tests: takes mail on 127.0.0.1 and writes what it read of each, one JSON object a line.

usage: smtp_receiver.py PORT FILE [--refuse CODE] [--certificate PEM] [--tls] [--login USER PASSWORD] [--utf8]
                        [--hold-quit] [--kerberos]

--refuse       refuses every recipient with this code
--certificate  certificate and key: offers STARTTLS, and takes no mail without it
--tls          speaks TLS from the first byte instead
--login        takes mail only from who knows these
--utf8         takes international mail (SMTPUTF8)
--kerberos     offers to log in with Kerberos, too, and refuses that
--hold-quit    answers QUIT after a minute, and writes `{"quit": true}` if the client has waited for that
"""
import argparse
import asyncio
import email
import email.policy
import json
import ssl

from aiosmtpd.smtp import SMTP, AuthResult


class Handler:
    def __init__(self, path, code, holds_quit):
        self.path, self.code, self.holds_quit = path, code, holds_quit

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
            "defects": [str(defect) for part in mail.walk() for defect in part.defects], "headers": mail.keys(),
            "hello": session.host_name, "is_encrypted": server.transport.get_extra_info("ssl_object") is not None,
            "sender_address": mail["From"].addresses[0].addr_spec, "recipient_header": mail["To"],
            "is_utf8": envelope.smtp_utf8, "is_authenticated": bool(session.authenticated),
        }
        self.write(record)
        return "250 OK"

    async def handle_QUIT(self, server, session, envelope):
        if self.holds_quit:
            # Cancelled when the client closes the connection.
            await asyncio.sleep(60)
            self.write({"quit": True})
        return "221 Bye"

    def write(self, record):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


class KerberosHandler(Handler):
    # aiosmtpd offers a mechanism of AUTH for each method with such a name.
    async def auth_GSSAPI(self, server, args):
        return AuthResult(success=False, handled=False)


def options_of(arguments):
    options = {"enable_SMTPUTF8": arguments.utf8}
    context = None
    if arguments.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments.certificate)
        if not arguments.tls:
            options.update(tls_context=context, require_starttls=True)
    if arguments.login:
        expected = tuple(word.encode() for word in arguments.login)

        def authenticator(server, session, envelope, mechanism, data):
            return AuthResult(success=(data.login, data.password) == expected, handled=False)

        # Over TLS from the first byte aiosmtpd does not know that it is encrypted.
        options.update(authenticator=authenticator, auth_required=True, auth_require_tls=not arguments.tls)
    return options, context if arguments.tls else None


async def main(arguments):
    kind = KerberosHandler if arguments.kerberos else Handler
    handler = kind(arguments.file, arguments.refuse, arguments.hold_quit)
    options, context = options_of(arguments)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(handler, **options), "127.0.0.1", arguments.port, ssl=context)
    # A test that dies must not leave its mail server behind.
    await asyncio.sleep(120)
    server.close()


parser = argparse.ArgumentParser()
parser.add_argument("port", type=int)
parser.add_argument("file")
parser.add_argument("--refuse")
parser.add_argument("--certificate")
parser.add_argument("--tls", action="store_true")
parser.add_argument("--login", nargs=2)
parser.add_argument("--utf8", action="store_true")
parser.add_argument("--hold-quit", action="store_true")
parser.add_argument("--kerberos", action="store_true")
asyncio.run(main(parser.parse_args()))

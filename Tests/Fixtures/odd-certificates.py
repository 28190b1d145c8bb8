#!/usr/bin/env python3
"""Makes an authority and clients' certificates of it that are wrong in one way each, or name somebody oddly.

    odd-certificates.py DIRECTORY

Writes ca.pem, other-ca.pem, crl.pem, and for each kind KIND.pem and KIND-key.pem.
"""
import datetime
import os
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NOW = datetime.datetime.utcnow()
DAY = datetime.timedelta(days=1)
HOUR = datetime.timedelta(hours=1)
MAILER = "spiffe://example.org/mailer"


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def key():
    return ec.generate_private_key(ec.SECP256R1())


def write(path, *certificates):
    with open(path, "wb") as file:
        for certificate in certificates:
            file.write(certificate.public_bytes(serialization.Encoding.PEM))


def authority(text):
    own = key()
    certificate = (x509.CertificateBuilder().subject_name(name(text)).issuer_name(name(text)).public_key(own.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(NOW - HOUR).not_valid_after(NOW + 30 * DAY)
                   .add_extension(x509.BasicConstraints(True, None), critical=True)
                   .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False)
                   .sign(own, hashes.SHA256()))
    return own, certificate


class Names(x509.UnrecognizedExtension):
    """A subjectAltName of raw bytes: what no library would write."""

    def __init__(self, names):
        body = b"".join(bytes([0x80 | tag, len(value)]) + value for tag, value in names)
        super().__init__(x509.oid.ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"\x30" + bytes([len(body)]) + body)


def main(directory):
    # Keys are for their owner alone.
    os.umask(0o077)
    issuer_key, issuer = authority("authority")
    # The same name, and another key.
    other_key, other = authority("authority")
    write(f"{directory}/ca.pem", issuer)
    write(f"{directory}/other-ca.pem", other)
    revoked = []

    def leaf(kind, names=((6, MAILER.encode()),), start=NOW - HOUR, end=NOW + DAY, signer=(issuer_key, issuer), common="x",
             uses=(ExtendedKeyUsageOID.CLIENT_AUTH,), is_authority=False, algorithm=hashes.SHA256(), chain=(), padding=0):
        own = key()
        builder = (x509.CertificateBuilder().subject_name(name(common)).public_key(own.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)
                   .issuer_name(signer[1].subject if signer else name(common))
                   .add_extension(x509.BasicConstraints(is_authority, None), critical=True))
        if names:
            builder = builder.add_extension(Names(names), critical=False)
        if uses:
            builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        if padding:
            oid = x509.ObjectIdentifier("1.3.6.1.4.1.99999.1")
            builder = builder.add_extension(x509.UnrecognizedExtension(oid, b"x" * padding), critical=False)
        certificate = builder.sign(signer[0] if signer else own, algorithm)
        write(f"{directory}/{kind}.pem", certificate, *chain)
        with open(f"{directory}/{kind}-key.pem", "wb") as file:
            file.write(own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                         serialization.NoEncryption()))
        return own, certificate

    leaf("good")
    leaf("expired", start=NOW - 3 * DAY, end=NOW - DAY)
    leaf("not-yet", start=NOW + DAY, end=NOW + 2 * DAY)
    leaf("self-signed", signer=None)
    leaf("other-authority", signer=(other_key, other))
    leaf("for-servers", uses=(ExtendedKeyUsageOID.SERVER_AUTH,))
    leaf("for-anything", uses=())
    leaf("is-authority", is_authority=True)
    leaf("sha1", algorithm=hashes.SHA1())
    revoked.append(leaf("revoked")[1])
    # Names: only the exact one is the mailer.
    leaf("common-name", names=(), common=MAILER)
    leaf("other-name", names=((6, b"spiffe://example.org/other"),), common=MAILER)
    leaf("two-uris", names=((6, MAILER.encode()), (6, b"spiffe://example.org/other")))
    leaf("upper-case", names=((6, MAILER.upper().encode()),))
    leaf("trailing-dot", names=((6, MAILER.encode() + b"."),))
    leaf("nul", names=((6, MAILER.encode() + b"\0.evil"),))
    leaf("wildcard", names=((6, b"spiffe://example.org/*"),))
    leaf("homoglyph", names=((6, "spiffe://example.org/mаiler".encode()),))
    leaf("as-dns", names=((2, MAILER.encode()),))
    # What somebody issued who is no authority.
    under = leaf("under")
    leaf("below-leaf", signer=under, chain=(under[1],))
    # Chains: longer than the depth, and larger than the list may be.
    signer = (issuer_key, issuer)
    chain = []
    for index in range(100):
        own = key()
        middle = (x509.CertificateBuilder().subject_name(name(f"middle {index}")).issuer_name(signer[1].subject)
                  .public_key(own.public_key()).serial_number(x509.random_serial_number()).not_valid_before(NOW - HOUR)
                  .not_valid_after(NOW + DAY).add_extension(x509.BasicConstraints(True, None), critical=True)
                  .sign(signer[0], hashes.SHA256()))
        signer = (own, middle)
        chain.insert(0, middle)
        if index in (7, 99):
            leaf(f"chain-{index + 1}", signer=signer, chain=tuple(chain))
    leaf("large", padding=70_000)
    # Of an authority between, which the first one has revoked or not.
    lists = []
    for kind in ["below-authority", "below-revoked"]:
        own = key()
        middle = (x509.CertificateBuilder().subject_name(name(kind)).issuer_name(issuer.subject).public_key(own.public_key())
                  .serial_number(x509.random_serial_number()).not_valid_before(NOW - HOUR).not_valid_after(NOW + DAY)
                  .add_extension(x509.BasicConstraints(True, None), critical=True).sign(issuer_key, hashes.SHA256()))
        if kind == "below-revoked":
            revoked.append(middle)
        leaf(kind, signer=(own, middle), chain=(middle,))
        lists.append((own, middle, []))

    with open(f"{directory}/crl.pem", "wb") as file:
        for own, certificate, serials in [(issuer_key, issuer, revoked), *lists]:
            file.write(revocations(own, certificate, serials))


def revocations(own, certificate, revoked):
    crl = (x509.CertificateRevocationListBuilder().issuer_name(certificate.subject).last_update(NOW - HOUR).next_update(NOW + DAY))
    for other in revoked:
        crl = crl.add_revoked_certificate(x509.RevokedCertificateBuilder().serial_number(other.serial_number)
                                          .revocation_date(NOW - HOUR).build())
    return crl.sign(own, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


main(sys.argv[1])

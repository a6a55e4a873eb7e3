"""Certificates for tests: an authority, and what it signs, as PEM files."""
import datetime
import ssl

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Authority:
    """An authority whose files lie in a folder; ca is the path of its own certificate."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name, self.issued = folder, name, 0
        self.authority = trustme.CA()
        self.ca = str(folder / f"{name}.pem")
        self.authority.cert_pem.write_to_path(self.ca)

    def issue(self, *names, common_name=None, expired=False):
        """Path of a new certificate for these names, with its key in the same file."""
        yesterday = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
        made = self.authority.issue_cert(*names, common_name=common_name, not_after=yesterday if expired else None)
        self.issued += 1
        path = self.folder / f"{self.name}-{self.issued}.pem"
        made.private_key_and_cert_chain_pem.write_to_path(str(path))
        path.chmod(0o600)
        return str(path)

    def issue_unusual(self, common_name, *names):
        """Path of a certificate as no authority makes one: any text for a name, or no name at all."""
        signer = serialization.load_pem_private_key(self.authority.private_key_pem.bytes(), None)
        issuer = x509.load_pem_x509_certificate(self.authority.cert_pem.bytes())
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.timezone.utc)
        subject = [x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)] if common_name else []
        made = x509.CertificateBuilder(issuer.subject, x509.Name(subject), key.public_key(), x509.random_serial_number(),
                                       now - datetime.timedelta(hours=1), now + datetime.timedelta(hours=1))
        if names:
            made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        self.issued += 1
        path = self.folder / f"{self.name}-{self.issued}.pem"
        path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                           serialization.NoEncryption()) +
                         made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        path.chmod(0o600)
        return str(path)

    def context(self, certificate=None):
        """Make what Python's ssl module needs to trust this authority and to show a certificate."""
        context = ssl.create_default_context(cafile=self.ca)
        if certificate:
            context.load_cert_chain(certificate)
        return context

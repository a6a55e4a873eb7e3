"""Certificates for tests: an authority, and what it signs, as PEM files."""
import datetime
import ssl

import trustme


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

    def context(self, certificate=None):
        """Make what Python's ssl module needs to trust this authority and to show a certificate."""
        context = ssl.create_default_context(cafile=self.ca)
        if certificate:
            context.load_cert_chain(certificate)
        return context

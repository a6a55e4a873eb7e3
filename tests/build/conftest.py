"""The tests of this folder share an installation."""
import pytest

from commands import BUILD, run


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A DESTDIR with everything that `make install` installs below /usr."""
    destination = tmp_path_factory.mktemp("installed")
    run("make", "-s", "install", f"DESTDIR={destination}", "PREFIX=/usr", f"VARIANT={BUILD.name}")
    return destination

"""The tests of this folder share an installation and wheels."""
import pytest

from commands import BUILD, build_wheels, run


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A DESTDIR with everything that `make install` installs below /usr."""
    destination = tmp_path_factory.mktemp("installed")
    run("make", "-s", "install", f"DESTDIR={destination}", "PREFIX=/usr", f"VARIANT={BUILD.name}")
    return destination


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """The wheels of the client and the server, by their project's name."""
    return build_wheels(tmp_path_factory.mktemp("wheels"), "client", "server")

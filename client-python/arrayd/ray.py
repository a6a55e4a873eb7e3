"""Arrays between Ray's actors without copies, where Ray has tensor transports (2.50 and later)."""

__all__ = ["register"]


def register():
    """Make the tensor transport "arrayd" known to Ray: results of methods with
    `@ray.method(tensor_transport="arrayd")` stay on the server, and other actors that get them attach them there.

    Call it before actors are made. All actors must use one server as one principal, or have the grant `exports`. The
    elements stay while Ray has a reference to the result.
    Returns: None. A second call changes nothing.
    Raises: ImportError where Ray is not installed, or has no tensor transports.
    Source: arrayd
    """
    from ._interop import ray_transport
    ray_transport.register()

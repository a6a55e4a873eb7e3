"""Ray's tensor transport for arrays: a method's result stays on the server, and Ray carries handles of it.

    maker    make() gives arrays ─▶ share() ─▶ handles, which Ray keeps with the reference
    taker    ◀─ attach() ◀─ handles
    maker    when Ray has dropped the last reference ─▶ revoke()
"""
import dataclasses

from ray.experimental import register_tensor_transport
from ray.experimental.rdt import CommunicatorMetadata, TensorTransportManager, TensorTransportMetadata

from .._base import ndarray
from .sharing import share

NAME = "ARRAYD"  # Ray knows transports in capitals


@dataclasses.dataclass
class _Handles(TensorTransportMetadata):
    """The handles that Ray carries to those who receive the arrays of a result."""

    handles: list = dataclasses.field(default_factory=list)


class _Transport(TensorTransportManager):
    """Receivers take the arrays by themselves, so nothing is sent and there is nothing to abort."""

    def tensor_transport_backend(self):
        return NAME

    @staticmethod
    def is_one_sided():
        return True

    @staticmethod
    def can_abort_transport():
        return True

    def actor_has_tensor_transport(self, actor):
        return True

    def extract_tensor_transport_metadata(self, obj_id, rdt_object):
        # Ray compares the device with those of the registration. Where the server computes is not its concern.
        return _Handles([(a.shape, a.dtype) for a in rdt_object], "cpu", [share(a) for a in rdt_object])

    def get_communicator_metadata(self, src_actor, dst_actor, backend=None):
        return CommunicatorMetadata()

    def recv_multiple_tensors(self, obj_id, tensor_transport_metadata, communicator_metadata, target_buffers=None):
        return [handle.attach() for handle in tensor_transport_metadata.handles]

    def send_multiple_tensors(self, tensors, tensor_transport_metadata, communicator_metadata):
        raise NotImplementedError("receivers attach the arrays; Ray does not call this for transports of one side")

    def garbage_collect(self, obj_id, tensor_transport_meta, tensors):
        for handle in tensor_transport_meta.handles:
            handle.revoke()

    def abort_transport(self, obj_id, communicator_metadata):
        pass


def register():
    """Make the transport known, once."""
    from ray.experimental.rdt.util import transport_manager_info
    if NAME not in transport_manager_info:
        register_tensor_transport(NAME, ["cpu"], _Transport, ndarray)

"""A kernel of Jupyter, as notebooks have it, for tests of several suites."""
import os
import queue
import sys

from jupyter_client.manager import KernelManager


class Kernel:
    """An IPython kernel, and what its cells give."""

    def __init__(self, **environment):
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                                          **environment})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)

    def cell(self, code, on_output=None):
        """(HTML or None, text, what it raised) of a cell. on_output is called with what it prints, as it does."""
        message = self.client.execute(code)
        shown, printed, raised = None, "", None
        while True:
            try:
                got = self.client.get_iopub_msg(timeout=120)
            except queue.Empty:
                raise AssertionError("the kernel says nothing") from None
            if got["parent_header"].get("msg_id") != message:
                continue
            kind, content = got["msg_type"], got["content"]
            if kind == "execute_result":
                shown = content["data"].get("text/html")
            elif kind == "stream" and content["name"] == "stdout":
                printed += content["text"]
                if on_output:
                    on_output(printed)
            elif kind == "error":
                raised = f"{content['ename']}: {content['evalue']}"
            elif kind == "status" and content["execution_state"] == "idle":
                return shown, printed, raised

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

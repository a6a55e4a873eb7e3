"""Plans of transforms under cuFFT's names: what CuPy's programs make beforehand. Here they are checked and not needed."""
from . import _scopes


class Plan(_scopes.Scope):
    """For which shape and type a transform is meant; `with plan:` makes it that of the transforms inside.

    Source: cupy.cuda.cufft.PlanNd
    """

    _place, _in_use = "plan", "a plan is in use already; leave its with block first"
    _differs = "The cuFFT plan and a.shape do not match"

    def __init__(self, axes, sizes, value_type, dtype):
        self.axes, self.shape, self.value_type, self.dtype = tuple(axes), tuple(sizes), value_type, dtype

    def check(self, kind, axes, sizes):
        """Refuse a transform that this plan is not for.

        Parameters: kind: "C2C", "R2C" or "C2R". axes: the axes. sizes: points along each.
        Returns: None.
        Raises: ValueError.
        Source: arrayd
        """
        if self.value_type != kind:
            raise ValueError(f"the plan is for {self.value_type} transforms, not {kind}")
        if sorted(zip(self.axes, self.shape)) != sorted(zip(axes, sizes)):
            raise ValueError(f"{self._differs}: it is for {self.shape} along axes {self.axes}, the transform "
                             f"for {tuple(sizes)} along {tuple(axes)}")


class Plan1d(Plan):
    """A plan along one axis.

    Source: cupy.cuda.cufft.Plan1d
    """

    _differs = "Target array size does not match the plan."


class PlanNd(Plan):
    """A plan along several axes.

    Source: cupy.cuda.cufft.PlanNd
    """


def make_plan(axes, sizes, value_type, dtype):
    """The plan for these axes.

    Parameters: axes: the axes. sizes: points along each. value_type: "C2C", "R2C" or "C2R". dtype: complex type.
    Returns: Plan1d or PlanNd.
    Source: arrayd
    """
    return (Plan1d if len(axes) == 1 else PlanNd)(axes, sizes, value_type, dtype)


def current_plan():
    """The plan whose with block this thread is in.

    Returns: Plan or None.
    Source: cupy.cuda.cufft.get_current_plan
    """
    return Plan._find_current()

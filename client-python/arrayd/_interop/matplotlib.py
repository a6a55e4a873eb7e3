"""Arrays in plots: Matplotlib asks a converter for the numbers of types that it does not know."""
from .._base import ndarray


def converter():
    """Register the converter of arrays with Matplotlib, whose modules are imported."""
    from matplotlib import units

    class Converter(units.ConversionInterface):
        """Fetches what is plotted along an axis."""

        @staticmethod
        def convert(value, unit, axis):
            if isinstance(value, ndarray):
                return value.get()
            return [each.get() if isinstance(each, ndarray) else each for each in value] \
                if isinstance(value, (list, tuple)) else value

    units.registry[ndarray] = Converter()

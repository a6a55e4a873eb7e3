"""Plots and tables of arrays: Matplotlib asks for the numbers of what it does not know; pandas is allowed to convert."""
import numpy as np
import pytest

import arrayd as ad

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.units  # noqa: E402
from matplotlib import pyplot as plt  # noqa: E402

HOST = np.linspace(0, 1, 7)


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    figure.canvas.draw()  # all that was plotted can be drawn
    plt.close(figure)


def test_lines(axes):
    x = ad.asarray(HOST)
    line, = axes.plot(x, ad.sin(x))
    np.testing.assert_array_equal(line.get_xdata(orig=False), HOST)
    np.testing.assert_allclose(line.get_ydata(orig=False), np.sin(HOST), rtol=1e-15)
    assert len(axes.plot(ad.ones((3, 2)))) == 2


def test_points_bars_and_areas(axes):
    x, y = ad.asarray(HOST), ad.asarray(HOST ** 2)
    points = axes.scatter(x, y)
    np.testing.assert_allclose(points.get_offsets(), np.column_stack([HOST, HOST ** 2]), rtol=1e-15)
    bars = axes.bar(x, y, width=0.1)
    np.testing.assert_allclose([bar.get_height() for bar in bars], HOST ** 2, rtol=1e-15)
    axes.fill_between(x, y)
    assert axes.axhline(y[2]).get_ydata(orig=False)[0] == HOST[2] ** 2


def test_images_where_it_is_allowed(axes):
    image = ad.asarray(HOST[:6].reshape(2, 3))
    with pytest.raises(TypeError, match="arrayd.implicit"):
        axes.imshow(image)
    with ad.implicit():
        np.testing.assert_array_equal(axes.imshow(image).get_array(), image.get())
        counts, _, _ = axes.hist(ad.asarray(HOST), bins=3)
    assert counts.sum() == 7


def test_a_failed_array_says_why(axes):
    failed = ad.arange(3)[ad.asarray([7])]
    with pytest.raises(matplotlib.units.ConversionError, match="index 7 is out of bounds"):
        axes.plot(failed)


def test_tables():
    pandas = pytest.importorskip("pandas")
    x = ad.asarray(HOST)
    with pytest.raises(TypeError, match="arrayd.implicit"):
        pandas.Series(x)
    with ad.implicit():
        frame = pandas.DataFrame({"x": x, "square": x * x})
    np.testing.assert_array_equal(frame["square"], HOST * HOST)
    assert isinstance(ad.asarray(frame["x"]), ad.ndarray) and float(ad.asarray(frame["x"]).sum()) == HOST.sum()

"""Whole programs of docs/examples with SciPy's functions on the server, beside SciPy."""
import pathlib
import sys

import numpy as np
import pytest

import arrayd as ad

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "docs/examples"))
import denoiser  # noqa: E402
import heat_flow  # noqa: E402
import microscopy  # noqa: E402


def near(ours, theirs, tolerance):
    np.testing.assert_allclose(ad.asnumpy(ours), theirs, rtol=tolerance, atol=tolerance * np.abs(theirs).max())


def test_microscopy():
    image = microscopy.photograph("coins", 1)
    results = [microscopy.find_objects(xp, ndimage, xp.asarray(image)) for xp, ndimage in map(
        microscopy.libraries, ("scipy", "arrayd"))]
    labels, areas, bright, centres = results[0]
    assert 20 <= areas.size <= 30  # 24 coins
    assert (results[1][0].get() == labels).all() and (results[1][1].get() == areas).all()
    near(results[1][2], bright, 1e-5)
    near(results[1][3], centres, 1e-9)


def test_heat_flow():
    k = heat_flow.conductivity(40)
    (expected, residual, steps), (found, other, more) = (
        heat_flow.solve(xp, sparse, linalg, xp.asarray(k)) for xp, sparse, linalg in map(
            heat_flow.libraries, ("scipy", "arrayd")))
    assert residual < 1e-7 and other < 1e-7 and abs(steps - more) <= 3
    near(found, expected, 1e-6)


def test_denoiser():
    clean, noisy = denoiser.melody(3)
    expected, found = (denoiser.denoise(xp, signal, ndimage, xp.asarray(noisy)) for xp, signal, ndimage in map(
        denoiser.libraries, ("scipy", "arrayd")))
    assert denoiser.ratio(np, clean, expected) > denoiser.ratio(np, clean, noisy) + 8
    near(found, expected, 1e-9)


@pytest.mark.parametrize("program, options", ((microscopy, ["--repeat", "1"]), (heat_flow, ["--size", "20"]),
                                              (denoiser, ["--seconds", "2"])))
def test_pictures(program, options, tmp_path, monkeypatch, capsys):
    if program is microscopy:
        pytest.importorskip("skimage", reason="its photograph is scikit-image's, which the longer tests install")
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", ["program", *options, "--picture", str(picture)])
    program.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["scipy", "arrayd"]
    assert picture.read_bytes().startswith(b"\x89PNG")
